"""Server-side dry-run of the manifests with strict field validation."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.manifests.domain.metadata import Manifest
from deployments.preflight.domain.checks import Check
from fleet.kube.domain.errors import (
    ClusterError,
    InstallationSuspended,
    NotOwned,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    Refused,
    describe_error,
)
from fleet.kube.services import objects

_NAME = "Server dry-run"
WARNINGS = "Cluster warnings"
# Exists on every cluster.
_EXISTING = "default"


def check(
    *,
    cluster_id: int,
    namespace: str,
    manifests: Sequence[Manifest],
    route: Manifest | None = None,
) -> list[Check]:
    """Whether the cluster accepts a revision's manifests and its route, with the cluster's warnings.

    `route` is None where a route is live already. The count is that of pages, which list the manifests.
    """
    accepted = f"The cluster accepts all {len(manifests)} objects"
    accepted += " and the route (strict validation)." if route else " (strict validation)."
    tried = [*manifests, *([route] if route else [])]
    try:
        if (
            objects.get(
                cluster_id=cluster_id,
                api_version="v1",
                kind="Namespace",
                namespace=None,
                name=namespace,
            )
            is None
        ):
            return _check_in_existing(cluster_id, namespace, tried, accepted)
        warnings = objects.dry_run(cluster_id=cluster_id, manifests=tried)
    except ClusterError as error:
        return [_from_error(error)]
    return [Check(_NAME, ok=True, detail=accepted), *_check_warnings(warnings)]


def _check_warnings(warnings: Sequence[str]) -> list[Check]:
    if not warnings:
        return []
    fix = "The cluster accepts these objects. A later release or a stricter policy may refuse them."
    detail = " ".join(f"{warning.rstrip('.')}." for warning in warnings)
    return [Check(WARNINGS, ok=False, detail=detail, fix=fix, is_blocking=False)]


def _check_in_existing(
    cluster_id: int, namespace: str, manifests: Sequence[Manifest], accepted: str
) -> list[Check]:
    """Validate in the default namespace, because the team's namespace does not exist yet.

    Conflicts, denials and Pod Security there say nothing about the team's own namespace, so they are
    ignored.
    """
    later = f"{namespace} is created with the first deployment"
    moved = [_moved(manifest) for manifest in manifests]
    try:
        warnings = objects.dry_run(cluster_id=cluster_id, manifests=moved)
    except (ObjectInvalid, ObjectNotFound, NotOwned, InstallationSuspended) as error:
        return [_from_error(error)]
    except ClusterError:
        return [Check(_NAME, ok=None, detail=f"Namespace {later}. The check runs then.")]
    detail = f"{accepted} Tried in namespace {_EXISTING}: {later}."
    lasting = [warning for warning in warnings if "PodSecurity" not in warning]
    return [Check(_NAME, ok=True, detail=detail), *_check_warnings(lasting)]


def _moved(manifest: Manifest) -> Manifest:
    meta = manifest["metadata"]
    if "namespace" not in meta:
        return manifest
    return {**manifest, "metadata": {**meta, "namespace": _EXISTING}}


def _from_error(error: ClusterError) -> Check:
    detail = describe_error(error)
    if isinstance(error, ObjectInvalid):
        return Check(_NAME, ok=False, detail=detail, fix="Fix the fields that the cluster reports.")
    if isinstance(error, (NotOwned, InstallationSuspended)):
        return Check(_NAME, ok=False, detail=detail, fix="Ask a platform admin.")
    if isinstance(error, ObjectConflict):
        fix = "Choose another name, or remove the existing object."
        return Check(_NAME, ok=False, detail=detail, fix=fix)
    if isinstance(error, ObjectNotFound):
        fix = (
            "Choose another cluster or engine, or ask a platform admin to install the "
            "missing kinds."
        )
        return Check(_NAME, ok=False, detail=detail, fix=fix)
    if isinstance(error, Refused):
        fix = "Ask a platform admin to grant the portal this permission on the cluster."
        return Check(_NAME, ok=False, detail=detail, fix=fix)
    return Check(_NAME, ok=None, detail=f"The cluster did not respond: {detail}")
