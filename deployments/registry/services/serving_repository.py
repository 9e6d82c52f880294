"""Create the serving repository of a version: an immutable prefix with exactly the verified bytes."""

from __future__ import annotations

import hashlib
from typing import Final

from deployments.models import ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.domain.serving_objects import ServingObject
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactStore, StoredObject
from deployments.registry.services.checklist import Checklist

_STEP: Final = "Serving repository"


def create(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    config: str,
    checklist: Checklist,
) -> tuple[str, list[ServingObject]]:
    """The prefix and its objects. Serving reads the newest object of each key, so the prefix must
    contain exactly two keys.
    """
    checklist.running(_STEP, "copying the file")
    name = version.model.name
    body = config.encode()
    config_sha256 = hashlib.sha256(body).hexdigest()
    prefix = object_keys.repository_prefix(
        team=version.team.slug,
        model=name,
        number=version.number,
        sha256=version.sha256,
        config_sha256=config_sha256,
    )
    model_key, config_key = (
        object_keys.model_file_key(prefix, name),
        object_keys.config_key(prefix, name),
    )
    desired = {model_key: version.sha256, config_key: config_sha256}
    objects = _verified_objects(store, prefix, desired, checklist)
    if objects is None:
        store.delete_all_versions(prefix)
        store.copy(stored, model_key)
        checklist.keep_alive()
        store.put(config_key, body, content_type="text/plain; charset=utf-8")
        objects = _verified_objects(store, prefix, desired, checklist)
        if objects is None:
            raise object_store.StoreUnreachable(f"{prefix}: the copy differs from the upload")
    checklist.passed(_STEP, f"created from exactly this file and verified; {_lock(store, objects)}")
    return prefix, objects


def _verified_objects(
    store: ArtifactStore, prefix: str, sha256_by_key: dict[str, str], checklist: Checklist
) -> list[ServingObject] | None:
    """The objects under the prefix, at the VersionId that was read; None if they differ."""
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


def _lock(store: ArtifactStore, objects: list[ServingObject]) -> str:
    """Lock the objects and describe the result."""
    stored = [
        StoredObject(item.key, item.version_id, item.size_bytes, item.etag) for item in objects
    ]
    try:
        is_locked = store.lock(stored)
    except object_store.StoreRefused:
        return "the store refused to lock them"
    return "locked in the bucket" if is_locked else "the bucket has no Object Lock"
