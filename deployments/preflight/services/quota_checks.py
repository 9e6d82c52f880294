"""Check a request against the GPU quota of its team."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.preflight.domain.checks import Check
from deployments.preflight.selectors import quotas
from deployments.preflight.selectors.quotas import RunningRevision
from deployments.spec.domain.serving_spec import ServingSpec
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
    committed = quotas.committed_gpus(
        team,
        running,
        without_change_id=without_change_id,
        without_deployment_id=without_deployment_id,
    )
    of_baseline = baseline.most_gpus if baseline else 0
    total = committed + spec.most_gpus + of_baseline
    detail = f"{total} of {team.quota_gpus} GPUs of {team.slug} after this."
    if of_baseline:
        detail = f"{detail.rstrip('.')}, {of_baseline} of them for the baseline."
    if total <= team.quota_gpus:
        return Check("Quota", ok=True, detail=detail)
    left = max(0, team.quota_gpus - committed)
    fitting = left // spec.gpus
    gpus = "1 GPU is" if left == 1 else f"{left or 'No'} GPUs are"
    if of_baseline and committed + spec.most_gpus <= team.quota_gpus:
        fix = f"{gpus} left: leave out the baseline, or ask a platform admin for more."
        return Check("Quota", ok=False, detail=detail, fix=fix)
    lower = f"lower max replicas to {fitting}, " if fitting >= spec.min_replicas else ""
    fix = f"{gpus} left: {lower}retire something, or ask a platform admin for more."
    return Check("Quota", ok=False, detail=detail, fix=fix)
