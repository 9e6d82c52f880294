"""How many replicas the candidate has at a step, so that its pods have the load of stable's.

Stable keeps all its replicas R, because every abort sends all requests back to it. With w percent of the
requests the candidate's pods have at most the load of stable's when it has

    max(1, ceil(R * w / (100 - w)))

of them. A shadow gets w copies for each 100 requests that stable answers: ceil(R * w / 100). It is never
more than what was approved for it, and all of that where it takes over: before any traffic (blue/green),
at 100%, and before the last promotion.
"""

from __future__ import annotations

from deployments.plans.domain.rollout_plan import RolloutPlan


def at_weight(weight: int, *, stable: int, approved: int, is_mirrored: bool = False) -> int:
    """`stable` replicas of the stable revision, `approved` of the candidate's own spec."""
    others = 100 if is_mirrored else 100 - weight
    if weight == 0 or others == 0:
        return approved
    equal = -(-stable * weight // others)
    return min(approved, max(1, equal))


def at_step(plan: RolloutPlan, index: int, *, stable: int, approved: int) -> int:
    """One past the last step: as many as it has once it is stable."""
    if index >= len(plan.steps):
        return approved
    weight = plan.steps[index].weight
    return at_weight(weight, stable=stable, approved=approved, is_mirrored=plan.is_shadow)
