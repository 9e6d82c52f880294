"""Lays out what a revision's settings add to the bucket, before a pod could ask for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from deployments.gateways import artifacts
from deployments.gateways.artifacts import ArtifactError, ArtifactStore, ObjectMissing
from deployments.models import Revision
from deployments.selectors import plans
from fleet.domain.cluster_errors import ClusterError, Unreachable


def lay_out(revision: Revision) -> ClusterError | None:
    """Why it could not be done, which may heal; None when all is there. Repeating it changes nothing.

    Triton falls back to the version's own configuration where the named one is missing, without a
    word: so it is read back, and nothing is pushed before.
    """
    files = plans.files_for(version=revision.version, spec=plans.spec_of(revision))
    if not files.objects:
        return None
    try:
        _write(artifacts.store(), files.objects)
    except ArtifactError as error:
        words = f"The configuration of {revision} could not be laid out: {error}"
        return Unreachable(words)
    return None


def _write(store: ArtifactStore, objects: Mapping[str, bytes]) -> None:
    for key, body in objects.items():
        if _is_there(store, key, body):
            continue
        store.put(key, body, content_type="text/plain; charset=utf-8")
        if not _is_there(store, key, body):
            raise artifacts.StoreUnreachable(f"{key} does not hold what was written")


def _is_there(store: ArtifactStore, key: str, body: bytes) -> bool:
    """Serving reads the newest object of the key, so that is the one that is compared."""
    try:
        found = store.head(key)
    except ObjectMissing:
        return False
    if found.size_bytes != len(body):
        return False
    live = b"".join(store.read(key, found.version_id))
    return hashlib.sha256(live).digest() == hashlib.sha256(body).digest()
