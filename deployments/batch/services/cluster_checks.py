"""Check what a job needs of its cluster: KEDA's ScaledJobs for a queue of messages, a LocalQueue of Kueue that it
names, DRA for GPUs by claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from deployments.batch.domain.job import spec_of
from deployments.batch.domain.settings import BatchSettings
from deployments.manifests.selectors import rendering
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import limits, queue_checks
from deployments.spec.domain.accelerators.claim_rules import MIG_PREFIX
from fleet.clusters.domain.capabilities import describe_feature
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.accounts.models import Team
from portal.core.errors import Invalid


def require(
    team: Team, cluster_id: int, settings: BatchSettings, *, name: str, is_queue: bool
) -> None:
    """Check that the cluster has what the job needs. Raises Invalid for what it certainly lacks."""
    if not is_queue and not settings.queue and not settings.device_claims:
        return
    cluster = clusters.get_cluster(cluster_id)
    if is_queue:
        _require_feature(cluster, "scaled-jobs", field="input")
    if settings.device_claims:
        _require_feature(cluster, "device-claims", field="device_claims")
        if settings.gpu_resource.startswith(MIG_PREFIX):
            _require_feature(cluster, "mig-claims", field="device_claims")
        if settings.claim_tolerations:
            _require_feature(cluster, "device-tolerations", field="claim_tolerations")
            allowed = limits.check_devices(spec_of(settings), cluster.serving, cluster=cluster.name)
            _require_ok(allowed, field="claim_tolerations")
    if settings.queue:
        _require_feature(cluster, "kueue", field="queue")
        _require_local_queue(team, cluster, settings, name)


def _require_feature(cluster: ClusterInfo, name: str, *, field: str) -> None:
    feature = cluster.capabilities.feature(name)
    if feature.is_there is False:
        problem = f"Cluster {cluster.name}: {describe_feature(name, feature)}"
        raise Invalid(problem, fields={field: problem})


def _require_local_queue(
    team: Team, cluster: ClusterInfo, settings: BatchSettings, name: str
) -> None:
    context = rendering.context_for(
        team=team.slug,
        name=name,
        deployment_id=0,
        cluster=cluster,
        policy=cluster.serving,
        capabilities=cluster.capabilities,
    )
    _require_ok(queue_checks.check_queue(context, spec_of(settings), cluster), field="queue")


def _require_ok(checks: Iterable[Check], *, field: str) -> None:
    for check in checks:
        if check.is_blocking and check.ok is False:
            problem = f"{check.detail} {check.fix}".strip()
            raise Invalid(problem, fields={field: problem})
