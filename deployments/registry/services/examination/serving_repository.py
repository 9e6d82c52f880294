"""Create the serving repository of a version: an immutable prefix with exactly the verified bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.models import ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.domain.serving_objects import ServingObject
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactStore, StoredObject
from deployments.registry.services.examination.checklist import Checklist

_STEP: Final = "Serving repository"


@dataclass(frozen=True, slots=True)
class RepositoryDraft:
    """The desired content of the repository, by path below its prefix.

    `copied` are objects of the artifact, `sha256` their digests, `generated` what the portal writes.
    """

    copied: Mapping[str, StoredObject]
    sha256: Mapping[str, str]
    generated: Mapping[str, bytes]

    @property
    def generated_sha256(self) -> dict[str, str]:
        return {path: hashlib.sha256(body).hexdigest() for path, body in self.generated.items()}

    @property
    def identity(self) -> str:
        """The same for the same files in the same places."""
        rows = sorted({**self.generated_sha256, **self.sha256}.items())
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def create(
    store: ArtifactStore, version: ModelVersion, draft: RepositoryDraft, checklist: Checklist
) -> tuple[str, list[ServingObject]]:
    """Return the prefix and its objects. Serving reads the newest object of each key, so the prefix must
    contain exactly these keys.
    """
    files = "file" if len(draft.copied) == 1 else "files"
    checklist.running(_STEP, f"copying the {files}")
    prefix = object_keys.repository_prefix(
        team=version.team.slug,
        model=version.model.name,
        number=version.number,
        sha256=version.sha256,
        layout_sha256=draft.identity,
    )
    desired = {prefix + path: sha256 for path, sha256 in draft.sha256.items()}
    desired |= {prefix + path: sha256 for path, sha256 in draft.generated_sha256.items()}
    objects = _verified_objects(store, prefix, desired, checklist)
    if objects is None:
        store.delete_all_versions(prefix)
        _write(store, prefix, draft, checklist)
        objects = _verified_objects(store, prefix, desired, checklist)
        if objects is None:
            raise object_store.StoreUnreachable(f"{prefix}: the copy differs from the upload")
    stored = [
        StoredObject(item.key, item.version_id, item.size_bytes, item.etag) for item in objects
    ]
    notes = (_lock(store, stored), _tag(store, version, stored, checklist))
    checklist.pass_step(
        _STEP,
        f"created from exactly {'this' if files == 'file' else 'these'} {files} and verified; "
        + "; ".join(note for note in notes if note),
    )
    return prefix, objects


def _write(store: ArtifactStore, prefix: str, draft: RepositoryDraft, checklist: Checklist) -> None:
    for path, stored in draft.copied.items():
        store.copy(stored, prefix + path, checklist.keep_alive)
        checklist.keep_alive()
    for path, body in draft.generated.items():
        store.put(prefix + path, body, content_type="text/plain; charset=utf-8")
        checklist.keep_alive()


def _verified_objects(
    store: ArtifactStore, prefix: str, sha256_by_key: dict[str, str], checklist: Checklist
) -> list[ServingObject] | None:
    """Return the objects under the prefix, at the VersionId that was read. None if they differ."""
    if set(store.list_keys(prefix)) != set(sha256_by_key):
        return None
    objects = [_read(store, key, checklist) for key in sorted(sha256_by_key)]
    return objects if all(item.sha256 == sha256_by_key[item.key] for item in objects) else None


def _read(store: ArtifactStore, key: str, checklist: Checklist) -> ServingObject:
    digest, newest = hashlib.sha256(), store.head(key)
    for chunk in store.read(key, newest.version_id):
        checklist.keep_alive()
        digest.update(chunk)
    return ServingObject(key, newest.version_id, newest.etag, newest.size_bytes, digest.hexdigest())


def _lock(store: ArtifactStore, stored: list[StoredObject]) -> str:
    """Lock the objects and describe the result."""
    try:
        is_locked = store.lock(stored)
    except object_store.StoreRefused:
        return "the store refused to lock them"
    return "locked in the bucket" if is_locked else "the bucket has no Object Lock"


def _tag(
    store: ArtifactStore,
    version: ModelVersion,
    repository: Sequence[StoredObject],
    checklist: Checklist,
) -> str:
    """Mirror the essentials as tags of artifact and repository. Return what is missing, for people.

    A store that does not answer raises, and the verification is tried again.
    """
    tags = {
        "team": version.team.slug,
        "model": version.model.name,
        "version": str(version.number),
        "sha256": version.sha256,
    }
    artifact = [
        StoredObject(file.key, file.s3_version_id, file.size_bytes)
        for file in version.files.select_related("version")
    ]
    try:
        for item in (*artifact, *repository):
            checklist.keep_alive()
            if not store.tag(item, tags):
                return "the store has no tags"
    except object_store.StoreRefused:
        return "the store refused to tag them"
    return ""
