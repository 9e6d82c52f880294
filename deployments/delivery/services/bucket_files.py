"""Write what a revision's settings add to the bucket, before any pod could read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployments.delivery.services import serving_watch
from deployments.manifests.selectors.rendered import RenderedRevision
from deployments.manifests.services import serving_bytes
from deployments.manifests.services.serving_bytes import Bucket, NotAsApproved
from deployments.models import Revision
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactError, ArtifactStore
from fleet.kube.domain.errors import ClusterError, Unreachable


def lay_out_all(
    revisions: Sequence[tuple[Revision, RenderedRevision]],
) -> list[ClusterError | None]:
    """Call `lay_out` for each revision."""
    bucket = Bucket()
    bucket.fetch(rendered.version.repository_prefix for _, rendered in revisions)
    return [lay_out(revision, rendered, bucket) for revision, rendered in revisions]


def lay_out(revision: Revision, rendered: RenderedRevision, bucket: Bucket) -> ClusterError | None:
    """Write the revision's files and return why it must not be pushed. None if the bucket holds what was approved.
    Idempotent.

    Triton silently falls back to the version's own configuration where the named one is missing, so each file is
    read back before the push. A file with other content than its name says was not written by the portal, so it is
    not overwritten here.
    """
    try:
        differences = serving_bytes.compare_revision(rendered, bucket, is_laid_out=False)
        if differences:
            problem = serving_bytes.describe_problem(differences)
            serving_watch.report_problem(revision.deployment, problem)
            return NotAsApproved(problem)
        _write(bucket.store, rendered.files.objects)
        serving_watch.check_soon(revision.deployment)
    except ArtifactError as error:
        return Unreachable(f"The files of {revision} could not be compared or copied: {error}")
    return None


def _write(store: ArtifactStore, objects: Mapping[str, bytes]) -> None:
    for key, body in objects.items():
        if serving_bytes.is_stored(store, key, body):
            continue
        store.put(key, body, content_type="text/plain; charset=utf-8")
        if not serving_bytes.is_stored(store, key, body):
            raise object_store.StoreUnreachable(f"{key} differs from what was written")
