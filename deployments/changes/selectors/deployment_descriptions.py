"""Describes a deployment's change request for lists, pages and notifications."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from deployments.changes.selectors import address_access
from deployments.changes.selectors.subjects import Description, deployment_of
from deployments.models import ChangeRequest
from deployments.plans.domain import descriptions
from deployments.plans.selectors import plans
from deployments.preflight.domain.checks import Cost
from deployments.serving.selectors import alias_returns
from deployments.serving.selectors.alias_returns import AliasReturn
from deployments.spec.domain import serving_spec
from deployments.spec.domain.placement import catalogue
from deployments.states import ChangeState
from portal.core.definitions.figures import format_money

_OPEN: Final = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)


def describe(change: ChangeRequest) -> Description:
    revision = change.revision
    names: dict[str, Any] = {
        "deployment": deployment_of(change).name,
        "version": revision.version.label if revision else "",
        "revision": revision.number if revision else 0,
        "restored": change.restored_number or 0,
        "is_shadow": plans.plan_of(change).is_shadow,
    }
    return Description(
        title=descriptions.change_title(change.kind, **names),
        detail=_detail_of(change),
        consequence=" ".join(
            part
            for part in (
                descriptions.consequence(change.kind, **names),
                address_access.consequence(change),
                alias_returns.describe(_alias_returns(change)),
            )
            if part
        ),
    )


def _alias_returns(change: ChangeRequest) -> list[AliasReturn]:
    """List the aliases that an open roll back moves back. Once it ended, its timeline says what it moved."""
    return alias_returns.list_for_change(change) if change.state in _OPEN else []


def _detail_of(change: ChangeRequest) -> str:
    deployment = deployment_of(change)
    parts = [deployment.team.slug, deployment.environment, deployment.cluster.name]
    if change.revision is not None:
        spec = {**change.revision.spec, **change.scale}
        unit = "GPU" if spec["gpus"] == 1 else "GPUs"
        parts.append(f"{spec['gpus']} {unit} of {_nodes(change.revision.spec)}")
        parts.append(_replicas(spec["min_replicas"], spec["max_replicas"]))
    if address_access.is_opening(change):
        parts.append("public, no key")
    if change.steps:
        parts.append(descriptions.describe_steps(plans.plan_of(change)))
    over = _over_budget(change.cost)
    if over is not None:
        parts.append(f"over budget by {format_money(over)} a month")
    return " · ".join(parts)


def _nodes(stored: dict[str, Any]) -> str:
    spec = serving_spec.read_stored(stored)
    return catalogue.qualify(spec.placement, " or ".join(spec.instance_types))


def _replicas(least: int, most: int) -> str:
    if least == most:
        return f"{least} replica{'' if least == 1 else 's'}"
    return f"{least}\N{EN DASH}{most} replicas"


def _over_budget(stored: dict[str, Any]) -> Decimal | None:
    """Return the dollars by which the larger of this month's forecast and a whole month at max replicas exceeds the
    budget.

    None if it does not, or if it is not known.
    """
    cost = Cost.from_json(stored)
    amounts = [cost.forecast, cost.team_month_max]
    most = max((amount for amount in amounts if amount is not None), default=None)
    if most is None or cost.budget is None or most <= cost.budget:
        return None
    return most - cost.budget
