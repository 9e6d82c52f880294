"""Compare the objects that serving reads with what was approved: before each start and while it
serves.

Serving reads the newest object of each key, so the newest is compared: with the record of the
version, which is part of what was approved, or with the files that the portal renders from a spec.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from deployments.manifests.selectors import rendering
from deployments.manifests.selectors.rendered import RenderedRevision
from deployments.models import ModelVersion
from deployments.registry.domain import object_keys, serving_objects
from deployments.registry.domain.serving_objects import ServingObject
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import (
    ArtifactError,
    ArtifactStore,
    ObjectMissing,
    StoredObject,
)
from fleet.kube.domain.errors import ClusterError

_THREADS: Final = 8


class NotAsApproved(ClusterError):
    """An error of bytes that differ from the approved ones. Nothing may start from them; only restoring the
    bucket helps.
    """


def describe_problem(differences: list[str]) -> str:
    described = serving_objects.describe_differences(differences)
    return (
        f"The bucket no longer matches the approved version: {described}. New pods "
        "can't start until a platform admin restores it; running pods are not affected."
    )


class Bucket:
    """The newest objects by prefix. Each prefix is listed once, however many revisions read it."""

    def __init__(self) -> None:
        self.store = object_store.store()
        self._listed: dict[str, list[StoredObject] | ArtifactError] = {}

    def fetch(self, prefixes: Iterable[str]) -> None:
        """List several prefixes concurrently."""
        missing = sorted({prefix for prefix in prefixes if prefix} - set(self._listed))
        if len(missing) > 1:
            with ThreadPoolExecutor(_THREADS) as pool:
                self._listed |= dict(zip(missing, pool.map(self._list, missing), strict=True))

    def newest(self, prefix: str) -> list[StoredObject]:
        """Return the newest objects below the prefix, listed once. Raises ArtifactError."""
        if prefix not in self._listed:
            self._listed[prefix] = self._list(prefix)
        listed = self._listed[prefix]
        if isinstance(listed, ArtifactError):
            raise listed
        return listed

    def _list(self, prefix: str) -> list[StoredObject] | ArtifactError:
        try:
            return self.store.list_newest(prefix)
        except ArtifactError as error:
            return error


def compare_revision(rendered: RenderedRevision, bucket: Bucket, *, is_laid_out: bool) -> list[str]:
    """Describe the differences. `is_laid_out`: it was pushed before, so no file may be missing.

    Raises ArtifactError when the store does not answer: the result is then unknown.
    """
    files, differences = rendered.files, list[str]()
    if rendering.loads_versions(rendered.spec):
        for version in (rendered.version, *rendered.additional):
            differences += compare_version(version, bucket)
    elif files.objects:
        live = {stored.key for stored in bucket.newest(files.prefix)}
        differences += [f"{key} was added" for key in sorted(live - set(files.objects))]
    return [*differences, *_compare_settings(bucket.store, files.objects, is_laid_out=is_laid_out)]


def compare_version(version: ModelVersion, bucket: Bucket) -> list[str]:
    """Compare the version's objects with its record. Configurations that revisions add beside the version are
    not part of it.
    """
    if version.source_uri:
        return []
    recorded = serving_objects.from_json(version.laid_out)
    if not recorded:
        return [f"no record of {version.label}; upload it again"]
    prefix, name = version.repository_prefix, version.model.name
    live = [
        ServingObject(stored.key, stored.version_id, stored.etag, stored.size_bytes)
        for stored in bucket.newest(prefix)
        if not object_keys.is_settings_key(prefix, name, stored.key)
    ]
    return serving_objects.differences(recorded, live)


def is_stored(store: ArtifactStore, key: str, body: bytes) -> bool | None:
    """Whether the newest object of the key has this content; None when there is none."""
    try:
        newest = store.head(key)
    except ObjectMissing:
        return None
    if newest.size_bytes != len(body):
        return False
    live = b"".join(store.read(key, newest.version_id))
    return hashlib.sha256(live).digest() == hashlib.sha256(body).digest()


def _compare_settings(
    store: ArtifactStore, objects: Mapping[str, bytes], *, is_laid_out: bool
) -> list[str]:
    differences = []
    for key, body in objects.items():
        is_same = is_stored(store, key, body)
        if is_same is None and is_laid_out:
            differences.append(f"{key} was deleted")
        elif is_same is False:
            differences.append(f"{key} was overwritten")
    return differences
