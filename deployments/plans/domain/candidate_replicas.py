"""The number of the candidate's replicas at a step, chosen so that its pods have the load of stable's.

Stable keeps all its replicas R, because every abort sends all requests back to it. With w percent of the
requests the candidate's pods have at most the load of stable's when it has

    max(1, ceil(R * w / (100 - w)))

of them. A shadow gets w copies for each 100 requests that stable answers: ceil(R * w / 100). So does a
candidate with a baseline, which is what its pods are compared with: then each carries what one of stable
did before the rollout. It is never more than what was approved for it, and all of that where it takes
over: before any traffic (blue/green), at 100%, and before the last promotion.
"""

from __future__ import annotations

from deployments.plans.domain import baseline
from deployments.plans.domain.rollout_plan import RolloutPlan


def at_weight(
    weight: int,
    *,
    stable: int,
    approved: int,
    is_mirrored: bool = False,
    has_baseline: bool = False,
) -> int:
    """Return the candidate's replicas at a weight. `stable` are the replicas of the stable revision, `approved`
    those of the candidate's own spec.
    """
    if weight == 0 or (weight == 100 and not is_mirrored):
        return approved
    others = 100 if is_mirrored or has_baseline else 100 - weight
    equal = -(-stable * weight // others)
    return min(approved, max(1, equal))


def at_step(plan: RolloutPlan, index: int, *, stable: int, approved: int) -> int:
    """Return the candidate's replicas at a step. One past the last step: as many as it has once it is stable."""
    if index >= len(plan.steps):
        return approved
    weight = plan.steps[index].weight
    return at_weight(
        weight,
        stable=stable,
        approved=approved,
        is_mirrored=plan.is_shadow,
        has_baseline=plan.has_baseline,
    )


def count_baseline(plan: RolloutPlan, *, stable: int, approved: int) -> int:
    """Return the most that the baseline has at any step; 0 without one."""
    if not plan.has_baseline:
        return 0
    counts = (
        at_step(plan, index, stable=stable, approved=approved)
        for index, step in enumerate(plan.steps)
        if baseline.share_at(step.weight)
    )
    return max(counts, default=0)
