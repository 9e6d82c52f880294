"""Check a request against its team's quota of GPUs and Neuron devices."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.preflight.domain.checks import Check
from deployments.preflight.selectors import quotas
from deployments.preflight.selectors.quotas import RunningRevision
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.gpus.domain import shares
from portal.accounts.models import Team


def check_quota(
    team: Team,
    spec: ServingSpec,
    running: Sequence[RunningRevision],
    *,
    without_change_id: int | None = None,
    without_deployment_id: int | None = None,
    baseline: ServingSpec | None = None,
) -> Check:
    """Count what the team runs at full scale-out and what is approved but not running yet."""
    known = quotas.sum_committed(
        team,
        running,
        without_change_id=without_change_id,
        without_deployment_id=without_deployment_id,
    )
    committed, of_baseline = known.gpus, baseline.most_gpus if baseline else 0
    counted = shares.name_plural({*known.resources, spec.gpu_resource})
    total = committed + spec.most_gpus + of_baseline
    detail = f"{total} of {team.quota_gpus} {counted} of {team.slug} after this."
    if of_baseline:
        detail = f"{detail.rstrip('.')}, {of_baseline} of them for the baseline."
    if total <= team.quota_gpus:
        return Check("Quota", ok=True, detail=detail)
    left = max(0, team.quota_gpus - committed)
    fitting = left // spec.gpus
    gpus = _describe_left(left, spec.gpu_resource)
    if of_baseline and committed + spec.most_gpus <= team.quota_gpus:
        fix = f"{gpus} left: leave out the baseline, or ask a platform admin for more."
        return Check("Quota", ok=False, detail=detail, fix=fix)
    lower = f"lower max replicas to {fitting}, " if fitting >= spec.min_replicas else ""
    fix = f"{gpus} left: {lower}retire a deployment, or ask a platform admin for more."
    return Check("Quota", ok=False, detail=detail, fix=fix)


def _describe_left(left: int, resource: str) -> str:
    """Describe what is left of the requested kind: "1 GPU is", "No Neuron devices are"."""
    kinds = shares.name_plural([resource])
    return f"1 {kinds.removesuffix('s')} is" if left == 1 else f"{left or 'No'} {kinds} are"
