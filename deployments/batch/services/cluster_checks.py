"""Check what a job needs of its cluster: KEDA's ScaledJobs for a queue of messages, and what its placement needs."""

from __future__ import annotations

from typing import Final

from deployments.batch.domain.job import spec_of
from deployments.batch.domain.settings import BatchSettings
from deployments.manifests.domain.metadata import ManifestContext
from deployments.manifests.selectors import rendering
from deployments.preflight.services import placement_checks, queue_checks
from deployments.spec.domain import cluster_support
from deployments.spec.domain.placement import catalogue
from fleet.clusters.domain.capabilities import describe_feature
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.accounts.models import Team
from portal.core.errors import Invalid

# Settings of a placement are top-level settings of a job.
_PLACEMENT: Final = "placement."


def require(
    team: Team, cluster_id: int, settings: BatchSettings, *, name: str, is_queue: bool
) -> None:
    """Check that the cluster has what the job needs. Raises Invalid for what it certainly lacks."""
    cluster, spec = clusters.get_cluster(cluster_id), spec_of(settings)
    if is_queue:
        _require_feature(cluster, "scaled-jobs", field="input")
    for path, option in cluster_support.needed_options(spec):
        if path.startswith(_PLACEMENT):
            _require_feature(cluster, option, field=path.removeprefix(_PLACEMENT))
    for check in (
        *placement_checks.check_rules(spec, cluster),
        *queue_checks.check_queue(_context_of(team, cluster, name), spec, cluster),
    ):
        if check.is_refusal:
            problem = f"{check.detail} {check.fix}".strip()
            field = catalogue.TITLES[check.name].removeprefix(_PLACEMENT)
            raise Invalid(problem, fields={field: problem})


def _require_feature(cluster: ClusterInfo, name: str, *, field: str) -> None:
    feature = cluster.capabilities.feature(name)
    if feature.is_there is False:
        problem = f"Cluster {cluster.name}: {describe_feature(name, feature)}"
        raise Invalid(problem, fields={field: problem})


def _context_of(team: Team, cluster: ClusterInfo, name: str) -> ManifestContext:
    return rendering.context_for(
        team=team.slug,
        name=name,
        deployment_id=0,
        cluster=cluster,
        policy=cluster.serving,
        capabilities=cluster.capabilities,
    )
