"""Releases and scalings of deployments, as marks on charts of their cost."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from django.db.models import Q

from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.spec.domain import replicas
from deployments.states import ChangeKind, ChangeState, RolloutPhase
from fleet.costs.domain.change_marks import ChangeMark

_ENDS: Final = {RolloutPhase.COMPLETED: "promoted", RolloutPhase.ABORTED: "aborted"}
_NEWEST: Final = 100


def list_marks(
    deployments: Collection[tuple[str, str]], start: datetime, end: datetime
) -> list[ChangeMark]:
    """List the changes that were applied and the rollouts that ended in [start, end), at most the newest 100 of
    each. `deployments` are pairs of team and name; with several, each text names its own.
    """
    if not deployments:
        return []
    of_named = Q()
    for team, name in deployments:
        of_named |= Q(deployment__team__slug=team, deployment__name=name)
    marks = [*_changes(of_named, start, end), *_ended_rollouts(of_named, start, end)]
    named = [(at, f"{name} {text}" if len(deployments) > 1 else text) for at, name, text in marks]
    return [ChangeMark(at, text) for at, text in sorted(named)]


def list_applied_changes(
    deployment: Deployment, start: datetime, end: datetime
) -> list[ChangeMark]:
    """List the applied changes in [start, end) that a rollout does not mark: what was deployed, scaled, started and
    rolled back.
    """
    kinds = (ChangeKind.DEPLOY, ChangeKind.SCALE, ChangeKind.START, ChangeKind.ROLL_BACK)
    of_deployment = Q(deployment=deployment, kind__in=kinds)
    changes = _changes(of_deployment, start, end)
    return [ChangeMark(at, text) for at, _, text in sorted(changes)]


def _changes(of_named: Q, start: datetime, end: datetime) -> list[tuple[datetime, str, str]]:
    rows = ChangeRequest.objects.filter(
        of_named,
        state=ChangeState.DONE,
        finished_at__gte=start,
        finished_at__lt=end,
    )
    # Without evidence, which is most of a row.
    rows = rows.select_related("deployment", "revision").only(
        *("kind", "scale", "restored_number", "finished_at"),
        *("deployment__name", "revision__number"),
    )
    return [
        (row.finished_at, row.deployment.name, text)
        for row in rows[:_NEWEST]
        if row.finished_at and row.deployment and (text := _text_of(row))
    ]


def _text_of(change: ChangeRequest) -> str:
    """Describe a change for its mark. Empty for one that changes no cost: a promotion is marked where the
    rollout ends.
    """
    number = change.revision.number if change.revision else 0
    if change.kind == ChangeKind.SCALE:
        return _describe_scale(change, number)
    texts = {
        ChangeKind.DEPLOY: f"r{number} deployed",
        ChangeKind.CANARY: f"r{number} canary",
        ChangeKind.ROLL_BACK: f"rolled back to r{change.restored_number or number}",
        ChangeKind.STOP: "stopped",
        ChangeKind.START: "started",
        ChangeKind.RETIRE: "retired",
    }
    return texts.get(ChangeKind(change.kind), "")


def _describe_scale(change: ChangeRequest, number: int) -> str:
    requested = replicas.range_of(change.scale)
    if requested is None:
        return f"scaled (r{number})"
    least, most = requested
    count = f"{most}" if least == most else f"{least} to {most}"
    return f"scaled to {count} replica{'' if count == '1' else 's'}"


def _ended_rollouts(of_named: Q, start: datetime, end: datetime) -> list[tuple[datetime, str, str]]:
    rows = Rollout.objects.filter(
        of_named, phase__in=_ENDS, finished_at__gte=start, finished_at__lt=end
    )
    rows = rows.select_related("deployment", "candidate_revision").only(
        "phase", "finished_at", "deployment__name", "candidate_revision__number"
    )
    return [
        (
            row.finished_at,
            row.deployment.name,
            f"r{row.candidate_revision.number} {_ENDS[RolloutPhase(row.phase)]}",
        )
        for row in rows.order_by("-id")[:_NEWEST]
        if row.finished_at
    ]
