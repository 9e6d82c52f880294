"""Lays out what a revision's settings add to the bucket, before a pod could ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployments.delivery.services import serving_watch
from deployments.manifests.selectors import rendering
from deployments.manifests.services import serving_bytes
from deployments.manifests.services.serving_bytes import Bucket, NotAsApproved
from deployments.models import Revision
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactError, ArtifactStore
from fleet.kube.domain.errors import ClusterError, Unreachable


def lay_out_all(revisions: Sequence[Revision]) -> list[ClusterError | None]:
    """By revision, as `lay_out`."""
    bucket = Bucket()
    bucket.fetch(revision.version.repository_prefix for revision in revisions)
    return [lay_out(revision, bucket) for revision in revisions]


def lay_out(revision: Revision, bucket: Bucket) -> ClusterError | None:
    """Why nothing of it may be pushed; None when all is there as it was approved. Repeating it
    changes nothing.

    Triton falls back to the version's own configuration where the named one is missing, without a
    word: so it is read back, and nothing is pushed before. What has another content than its name
    says was not written by the portal, so it is not put right here.
    """
    try:
        found = serving_bytes.of_revision(revision, bucket, is_laid_out=False)
        if found:
            words = serving_bytes.problem_words(found)
            serving_watch.alarm(revision.deployment, words)
            return NotAsApproved(words)
        files = rendering.files_for(version=revision.version, spec=rendering.spec_of(revision))
        _write(bucket.store, files.objects)
        serving_watch.look_soon(revision.deployment)
    except ArtifactError as error:
        words = f"The files of {revision} could not be compared or copied: {error}"
        return Unreachable(words)
    return None


def _write(store: ArtifactStore, objects: Mapping[str, bytes]) -> None:
    for key, body in objects.items():
        if serving_bytes.holds(store, key, body):
            continue
        store.put(key, body, content_type="text/plain; charset=utf-8")
        if not serving_bytes.holds(store, key, body):
            raise object_store.StoreUnreachable(f"{key} does not hold what was written")
