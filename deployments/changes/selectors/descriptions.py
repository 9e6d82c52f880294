"""What a change request is, in the words of lists and pages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from deployments.models import ChangeRequest
from deployments.plans.domain import descriptions, rollout_plan
from deployments.states import ChangeKind


def of_kind(kind: str, version: str = "") -> str:
    """For example "canary of detector:2"."""
    noun = ChangeKind(kind).noun
    return f"{noun} of {version}" if version else noun


def title_of(change: ChangeRequest) -> str:
    return descriptions.change_title(change.kind, **_words_of(change))


def consequence_of(change: ChangeRequest) -> str:
    return descriptions.consequence(change.kind, **_words_of(change))


def _words_of(change: ChangeRequest) -> dict[str, Any]:
    revision = change.revision
    return {
        "deployment": change.deployment.name,
        "version": revision.version.label if revision else "",
        "revision": revision.number if revision else 0,
        "restored": change.restored_number or 0,
        "is_shadow": rollout_plan.is_shadow(change.plan),
    }


def detail_of(change: ChangeRequest) -> str:
    deployment = change.deployment
    parts = [deployment.team.slug, deployment.environment, deployment.cluster.name]
    if change.revision is not None:
        spec = {**change.revision.spec, **change.scale}
        unit = "GPU" if spec["gpus"] == 1 else "GPUs"
        parts.append(f"{spec['gpus']} {unit} of {spec['instance_type']}")
        parts.append(_replicas(spec["min_replicas"], spec["max_replicas"]))
    if change.steps:
        parts.append(
            descriptions.step_words(change.steps, is_shadow=rollout_plan.is_shadow(change.plan))
        )
    over = _over_budget(change.cost)
    if over is not None:
        parts.append(f"over budget by ${over:,.0f} a month")
    return " · ".join(parts)


def _replicas(least: int, most: int) -> str:
    if least == most:
        return f"{least} replica{'' if least == 1 else 's'}"
    return f"{least}\N{EN DASH}{most} replicas"


def _over_budget(cost: dict[str, Any]) -> Decimal | None:
    """The larger of this month's forecast and a whole month at the most replicas."""
    budget = amount(cost.get("budget"))
    amounts = [amount(cost.get(name)) for name in ("forecast", "team_month_max")]
    most = max((amount for amount in amounts if amount is not None), default=None)
    if most is None or budget is None or most <= budget:
        return None
    return most - budget


def amount(text: Any) -> Decimal | None:
    return None if text is None else Decimal(str(text))
