"""Rows of the deployments tables: what is wanted, seen, answered, held and paid, without N+1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from deployments.models import Deployment
from deployments.plans.domain import descriptions
from deployments.rollouts.selectors import rollouts as rollout_rows
from deployments.serving.selectors import deployments, statistics
from deployments.serving.selectors.statistics import Figures
from fleet.telemetry.selectors import current
from fleet.telemetry.selectors.current import AllocatedGpus, WorkloadKey

_HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Row:
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


def rows_of(found: Sequence[Deployment]) -> list[Row]:
    """`found` comes from selectors.deployments, annotated with changed_at (see pages_list)."""
    figures = statistics.figures_of(found)
    held = current.allocated_to([key for one in found for key in statistics.workload_keys(one)])
    return [_row(deployment, figures[deployment.pk], held) for deployment in found]


def _row(deployment: Deployment, figures: Figures, held: dict[WorkloadKey, AllocatedGpus]) -> Row:
    holds = [held[key] for key in statistics.workload_keys(deployment) if key in held]
    state, text = _state_of(deployment)
    is_routed = deployment.stable_revision is not None and not deployment.is_stopped
    return Row(
        team_slug=deployment.team.slug,
        name=deployment.name,
        serves=_serves(deployment),
        state=state,
        state_text=text,
        reason=deployment.state_reason if deployment.state != "ready" else "",
        candidate_weight=deployment.candidate_weight if is_routed else None,
        candidate_mirror=deployment.candidate_mirror if is_routed else 0,
        figures=figures,
        gpus=sum((hold.gpus for hold in holds), Decimal(0)),
        usd_per_day=_per_day(holds),
        changed_at=getattr(deployment, "changed_at", deployment.created_at),
    )


def _per_day(holds: Sequence[AllocatedGpus]) -> Decimal | None:
    total = Decimal(0)
    for hold in holds:
        if hold.usd_per_hour_amount is None:
            return None
        total += hold.usd_per_hour_amount * _HOURS_PER_DAY
    return total


def _serves(deployment: Deployment) -> str:
    return " → ".join(
        revision.version.label for revision in statistics.desired_revisions(deployment)
    )


def _state_of(deployment: Deployment) -> tuple[str, str]:
    """An open rollout is what a reader wants to know first, unless the deployment is unwell."""
    if deployments.is_stopping(deployment):
        return "stopping", ""
    rollouts = getattr(deployment, "open_rollouts", [])
    if rollouts and deployment.state in ("ready", "progressing"):
        phase = rollouts[0].phase
        words = descriptions.rollout_short(
            phase,
            weight=deployment.candidate_weight,
            mirror=deployment.candidate_mirror,
            is_shadow=rollout_rows.is_shadow(rollouts[0]),
        )
        return ("canary" if phase in ("preparing", "running") else phase), words
    return deployment.state, ""
