"""Whether serving would read exactly what was approved: asked before every start, and while it serves.

Serving reads the newest object of each key, so it is the newest that is compared: with the record
of the version, which is part of what was approved, or with what the portal made of a spec.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from deployments.manifests.selectors import rendering
from deployments.models import ModelVersion, Revision
from deployments.registry.domain import object_keys, serving_objects
from deployments.registry.domain.serving_objects import ServingObject
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import (
    ArtifactError,
    ArtifactStore,
    ObjectMissing,
    StoredObject,
)
from deployments.spec.domain.engines import ONNX_ENGINES
from fleet.kube.domain.errors import ClusterError

_AT_ONCE: Final = 8


class NotAsApproved(ClusterError):
    """Nothing may start from these bytes; only someone who puts the bucket right can mend it."""


def problem_words(found: list[str]) -> str:
    return (
        f"The bucket no longer matches the approved version: {serving_objects.describe_differences(found)}. New pods "
        "can't start until a platform admin restores it; running pods are not affected."
    )


class Bucket:
    """What serving would read now, asked once of each prefix however many revisions read it."""

    def __init__(self) -> None:
        self.store = object_store.store()
        self._found: dict[str, list[StoredObject] | ArtifactError] = {}

    def fetch(self, prefixes: Iterable[str]) -> None:
        """Several at a time."""
        wanted = sorted({one for one in prefixes if one} - set(self._found))
        if len(wanted) > 1:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                self._found |= dict(zip(wanted, pool.map(self._ask, wanted), strict=True))

    def newest(self, prefix: str) -> list[StoredObject]:
        """Raises ArtifactError."""
        if prefix not in self._found:
            self._found[prefix] = self._ask(prefix)
        found = self._found[prefix]
        if isinstance(found, ArtifactError):
            raise found
        return found

    def _ask(self, prefix: str) -> list[StoredObject] | ArtifactError:
        try:
            return self.store.list_newest(prefix)
        except ArtifactError as error:
            return error


def of_revision(revision: Revision, bucket: Bucket, *, is_laid_out: bool) -> list[str]:
    """What differs. `is_laid_out`: it was pushed before, so nothing of it may be missing.

    Raises ArtifactError when the store cannot be asked: that is "not known".
    """
    spec, version = rendering.spec_of(revision), revision.version
    files = rendering.files_for(version=version, spec=spec)
    found: list[str] = []
    if spec.engine in ONNX_ENGINES:
        for one in (version, *rendering.packed_of(version, spec)):
            found += of_version(one, bucket)
    elif files.objects:
        there = {one.key for one in bucket.newest(files.prefix)}
        found += [f"{key} was added" for key in sorted(there - set(files.objects))]
    return [*found, *_of_settings(bucket.store, files.objects, is_laid_out=is_laid_out)]


def of_version(version: ModelVersion, bucket: Bucket) -> list[str]:
    """Revisions with settings of their own bring their configurations, named after their content."""
    if version.source_uri:
        return []
    recorded = serving_objects.from_json(version.laid_out)
    if not recorded:
        return [f"no record of {version.label}; upload it again"]
    prefix, name = version.repository_prefix, version.model.name
    live = [
        ServingObject(one.key, one.version_id, one.etag, one.size_bytes)
        for one in bucket.newest(prefix)
        if not object_keys.is_settings_key(prefix, name, one.key)
    ]
    return serving_objects.differences(recorded, live)


def holds(store: ArtifactStore, key: str, body: bytes) -> bool | None:
    """Whether the newest object of the key is this; None when there is none."""
    try:
        found = store.head(key)
    except ObjectMissing:
        return None
    if found.size_bytes != len(body):
        return False
    live = b"".join(store.read(key, found.version_id))
    return hashlib.sha256(live).digest() == hashlib.sha256(body).digest()


def _of_settings(
    store: ArtifactStore, objects: Mapping[str, bytes], *, is_laid_out: bool
) -> list[str]:
    found = []
    for key, body in objects.items():
        is_it = holds(store, key, body)
        if is_it is None and is_laid_out:
            found.append(f"{key} was deleted")
        elif is_it is False:
            found.append(f"{key} was overwritten")
    return found
