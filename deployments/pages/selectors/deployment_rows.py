"""Rows of the deployments tables: what is wanted, seen, answered, held and paid, without N+1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from deployments.domain import wording
from deployments.models import Deployment, Revision
from deployments.selectors import deployments
from deployments.selectors import rollouts as rollout_rows
from fleet.selectors import serving_now
from fleet.selectors.serving_now import Held, Traffic, WorkloadKey
from portal.core import clock

_HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Figures:
    """None is not known, or, for latency and errors, nothing to divide by."""

    requests_per_second: float | None
    latency_ms: float | None
    error_ratio: float | None


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
    keys = [key for deployment in found for key in keys_of(deployment)]
    traffic = serving_now.traffic_of(keys)
    held = serving_now.held_by(keys)
    now = clock.now()
    return [_row(deployment, traffic, held, now) for deployment in found]


def keys_of(deployment: Deployment) -> list[WorkloadKey]:
    return [
        WorkloadKey(
            deployment.cluster_id,
            deployment.namespace,
            f"{deployment.name}-r{revision.number}",
        )
        for revision in _revisions(deployment)
    ]


def _revisions(deployment: Deployment) -> list[Revision]:
    wanted = (deployment.stable_revision, deployment.candidate_revision)
    return [revision for revision in wanted if revision is not None]


def _row(
    deployment: Deployment,
    traffic: dict[WorkloadKey, Traffic],
    held: dict[WorkloadKey, Held],
    now: datetime,
) -> Row:
    keys = keys_of(deployment)
    answering = keys[:1] if deployments.is_mirrored(deployment) else keys
    holds = [held[key] for key in keys if key in held]
    state, text = _state_of(deployment)
    return Row(
        team_slug=deployment.team.slug,
        name=deployment.name,
        serves=_serves(deployment),
        state=state,
        state_text=text,
        reason=deployment.state_reason if deployment.state != "ready" else "",
        candidate_weight=deployment.candidate_weight if deployment.stable_revision else None,
        candidate_mirror=deployment.candidate_mirror,
        figures=figures_of([traffic[key] for key in answering if key in traffic], now),
        gpus=sum((hold.gpus for hold in holds), Decimal(0)),
        usd_per_day=_per_day(holds),
        changed_at=getattr(deployment, "changed_at", deployment.created_at),
    )


def figures_of(found: Sequence[Traffic], now: datetime) -> Figures:
    if not found:
        return Figures(None, None, None)
    span = max(1.0, (now - min(one.since for one in found)).total_seconds())
    success = sum(one.success for one in found)
    total = success + sum(one.failure for one in found)
    duration = sum(one.duration_us for one in found)
    return Figures(
        requests_per_second=total / span,
        latency_ms=duration / success / 1000 if success else None,
        error_ratio=(total - success) / total if total else None,
    )


def _per_day(holds: Sequence[Held]) -> Decimal | None:
    total = Decimal(0)
    for hold in holds:
        if hold.usd_per_hour_amount is None:
            return None
        total += hold.usd_per_hour_amount * _HOURS_PER_DAY
    return total


def _serves(deployment: Deployment) -> str:
    return " → ".join(revision.version.label for revision in _revisions(deployment))


def _state_of(deployment: Deployment) -> tuple[str, str]:
    """An open rollout is what a reader wants to know first, unless the deployment is unwell."""
    rollouts = getattr(deployment, "open_rollouts", [])
    if rollouts and deployment.state in ("ready", "progressing"):
        phase = rollouts[0].phase
        words = wording.rollout_short(
            phase,
            weight=deployment.candidate_weight,
            mirror=deployment.candidate_mirror,
            is_shadow=rollout_rows.is_shadow(rollouts[0]),
        )
        return ("canary" if phase in ("preparing", "running") else phase), words
    return deployment.state, ""
