"""Rows of the deployments table, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from deployments.models import Deployment
from deployments.pages.selectors import shown_state
from deployments.serving.selectors import deployments, statistics
from deployments.serving.selectors.statistics import Figures
from fleet.telemetry.selectors import current
from fleet.telemetry.selectors.current import AllocatedGpus, WorkloadKey

_HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    team_slug: str
    name: str
    serves: str
    state: str
    state_text: str
    reason: str
    # None while nothing is routed.
    candidate_weight: int | None
    candidate_mirror: int
    figures: Figures
    gpus: Decimal
    usd_per_day: Decimal | None
    changed_at: datetime


def build_rows(page: Sequence[Deployment]) -> list[DeploymentRow]:
    """Build the rows of a page of deployments. `page` is annotated with changed_at, see
    deployment_list.visible_rows.
    """
    figures = statistics.figures_of(page)
    allocated = current.count_workload_gpus(
        [key for deployment in page for key in statistics.workload_keys(deployment)]
    )
    return [_row(deployment, figures[deployment.pk], allocated) for deployment in page]


def _row(
    deployment: Deployment, figures: Figures, allocated: dict[WorkloadKey, AllocatedGpus]
) -> DeploymentRow:
    allocations = [
        allocated[key] for key in statistics.workload_keys(deployment) if key in allocated
    ]
    rollouts = getattr(deployment, "open_rollouts", [])
    shown = shown_state.describe_deployment(deployment, next(iter(rollouts), None))
    is_routed = deployments.is_routed(deployment)
    return DeploymentRow(
        team_slug=deployment.team.slug,
        name=deployment.name,
        serves=_serves(deployment),
        state=shown.state,
        state_text=shown.text,
        reason=shown.reason,
        candidate_weight=deployment.candidate_weight if is_routed else None,
        candidate_mirror=deployment.candidate_mirror if is_routed else 0,
        figures=figures,
        gpus=sum((allocation.gpus for allocation in allocations), Decimal(0)),
        usd_per_day=_per_day(allocations),
        changed_at=getattr(deployment, "changed_at", deployment.created_at),
    )


def _per_day(allocations: Sequence[AllocatedGpus]) -> Decimal | None:
    total = Decimal(0)
    for allocation in allocations:
        if allocation.usd_per_hour_amount is None:
            return None
        total += allocation.usd_per_hour_amount * _HOURS_PER_DAY
    return total


def _serves(deployment: Deployment) -> str:
    return " → ".join(
        revision.version.label for revision in statistics.desired_revisions(deployment)
    )
