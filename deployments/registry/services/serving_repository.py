"""Lay out what serving reads: an immutable prefix made from exactly the verified bytes."""

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


def lay_out(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    config: str,
    checklist: Checklist,
) -> tuple[str, list[ServingObject]]:
    """The prefix, and what lies there. Serving reads the newest object of each key, so exactly two
    keys may be there.
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
    laid = _laid_out(store, prefix, desired, checklist)
    if laid is None:
        store.delete_all_versions(prefix)
        store.copy(stored, model_key)
        checklist.keep_alive()
        store.put(config_key, body, content_type="text/plain; charset=utf-8")
        laid = _laid_out(store, prefix, desired, checklist)
        if laid is None:
            raise object_store.StoreUnreachable(f"{prefix}: the copy differs from the upload")
    checklist.passed(_STEP, f"created from exactly this file and verified; {_held(store, laid)}")
    return prefix, laid


def _laid_out(
    store: ArtifactStore, prefix: str, desired: dict[str, str], checklist: Checklist
) -> list[ServingObject] | None:
    """What lies there, each object at the VersionId that was read; None when it is something else."""
    if set(store.list_keys(prefix)) != set(desired):
        return None
    found = [_read(store, key, checklist) for key in sorted(desired)]
    return found if all(one.sha256 == desired[one.key] for one in found) else None


def _read(store: ArtifactStore, key: str, checklist: Checklist) -> ServingObject:
    digest, newest = hashlib.sha256(), store.head(key)
    for chunk in store.read(key, newest.version_id):
        checklist.keep_alive()
        digest.update(chunk)
    return ServingObject(key, newest.version_id, newest.etag, newest.size_bytes, digest.hexdigest())


def _held(store: ArtifactStore, laid: list[ServingObject]) -> str:
    """Whether these versions can still be removed by whoever may write to the bucket."""
    objects = [StoredObject(one.key, one.version_id, one.size_bytes, one.etag) for one in laid]
    try:
        is_held = store.hold(objects)
    except object_store.StoreRefused:
        return "the store refused to lock them"
    return "locked in the bucket" if is_held else "the bucket has no Object Lock"
