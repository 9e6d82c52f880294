"""Change requests as lists and pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deployments.domain import rollout_plans, wording
from deployments.domain.states import ChangeState
from deployments.models import ChangeRequest, Deployment, EmergencyReview
from deployments.selectors import approvals, changes
from portal.accounts.models import User


@dataclass(frozen=True, slots=True)
class ChangeItem:
    change: ChangeRequest
    title: str
    detail: str
    consequence: str
    # What of the approvals is given and missing; empty when it is decided.
    approvals: str
    # Approved without the rules.
    is_emergency: bool
    # What it costs a month at the fewest replicas; None where it costs nothing or is not known.
    month_min: Decimal | None


@dataclass(frozen=True, slots=True)
class FieldLine:
    label: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


_FIELD_WORDS = {"sha256": "SHA-256", "cpu": "CPU", "gpus": "GPUs", "gpu_resource": "GPU resource"}


def field_words(name: str) -> str:
    return _FIELD_WORDS.get(name) or name.replace("_", " ").capitalize()


def lines_of(change: ChangeRequest) -> list[FieldLine]:
    """Field by field what serves now and what is asked for; fields empty on both sides left out."""
    return [
        FieldLine(field_words(line.field), line.before, line.after)
        for line in changes.diff_of(change)
        if line.before or line.after
    ]


def item_of(change: ChangeRequest) -> ChangeItem:
    words = _words_of(change)
    standing = approvals.standing_of(change)
    return ChangeItem(
        change=change,
        title=wording.change_title(change.kind, **words),
        detail=_detail_of(change),
        consequence=wording.consequence(change.kind, **words),
        approvals=standing.words if change.state == ChangeState.SUBMITTED else "",
        is_emergency=standing.is_emergency,
        month_min=_amount(change.cost.get("month_min")),
    )


def items_of(found: Iterable[ChangeRequest]) -> list[ChangeItem]:
    return [item_of(change) for change in found]


def review_of(change: ChangeRequest) -> EmergencyReview | None:
    found: EmergencyReview | None = getattr(change, "emergency_review", None)
    return found


def open_change_of(user: User, deployment: Deployment) -> ChangeItem | None:
    rows = changes.list_visible_to(user).filter(
        deployment=deployment, state__in=changes.OPEN_STATES
    )
    found = rows.first()
    return item_of(found) if found else None


def _words_of(change: ChangeRequest) -> dict[str, Any]:
    revision = change.revision
    return {
        "deployment": change.deployment.name,
        "version": revision.version.label if revision else "",
        "revision": revision.number if revision else 0,
        "is_shadow": rollout_plans.is_shadow(change.plan),
    }


def _detail_of(change: ChangeRequest) -> str:
    deployment = change.deployment
    parts = [deployment.team.slug, deployment.environment, deployment.cluster.name]
    if change.revision is not None:
        spec = {**change.revision.spec, **change.scale}
        unit = "GPU" if spec["gpus"] == 1 else "GPUs"
        parts.append(f"{spec['gpus']} {unit} of {spec['instance_type']}")
        parts.append(_replicas(spec["min_replicas"], spec["max_replicas"]))
    if change.steps:
        parts.append(
            wording.step_words(change.steps, is_shadow=rollout_plans.is_shadow(change.plan))
        )
    over = _over_budget(change.cost)
    if over is not None:
        parts.append(f"forecast over budget by ${over:,.0f}")
    return " · ".join(parts)


def _replicas(least: int, most: int) -> str:
    if least == most:
        return f"{least} replica{'' if least == 1 else 's'}"
    return f"{least}\N{EN DASH}{most} replicas"


def _over_budget(cost: dict[str, Any]) -> Decimal | None:
    forecast, budget = _amount(cost.get("forecast")), _amount(cost.get("budget"))
    if forecast is None or budget is None or forecast <= budget:
        return None
    return forecast - budget


def _amount(text: Any) -> Decimal | None:
    return None if text is None else Decimal(str(text))
