"""Recompute advice, and follow what was requested. Repeated and concurrent runs add nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import Saving
from deployments.advice.selectors import facts
from deployments.advice.services import realised, team_advice, warnings
from deployments.models import AdviceItem, Deployment
from deployments.states import AdviceState
from fleet.costs.selectors.hours import NodeHours
from portal.accounts.models import Team
from portal.core import clock

ANSWERABLE: Final = (AdviceState.OPEN, AdviceState.SNOOZED, AdviceState.DISMISSED)
# After a change the same advice waits for a week of new figures.
_FOLLOWED: Final = (AdviceState.REQUESTED,)
_MAX_NODES: Final = 100


@dataclass(frozen=True, slots=True)
class _Subject:
    """A deployment with its team, or a node."""

    label: str
    deployment: Deployment | None = None
    node: NodeHours | None = None

    @property
    def fields(self) -> dict[str, Any]:
        if self.deployment is not None:
            return {"deployment": self.deployment, "node_uid": ""}
        return {"deployment": None, "node_uid": self.node.uid if self.node else ""}


def sweep() -> None:
    """Recompute the advice of all teams and nodes, follow requested advice and send warnings."""
    realised.follow()
    _wake_snoozed(clock.now())
    for team in Team.objects.order_by("pk"):
        refresh_team(team)
    _refresh_nodes()
    warnings.sweep()


def refresh_team(team: Team) -> None:
    at = clock.now()
    kept: list[int] = []
    for deployment, advice in team_advice.compute(team):
        subject = _Subject(str(deployment), deployment=deployment)
        for kind, saving in advice.items():
            kept += _write(subject, kind, saving, at)
    _remove(AdviceItem.objects.filter(team=team), kept, at)


def _refresh_nodes() -> None:
    at = clock.now()
    kept: list[int] = []
    for node, known in facts.list_nodes():
        subject = _Subject(f"{known.cluster}/{known.name}", node=node)
        for kind, saving in catalogue.advise_node(known):
            if len(kept) < _MAX_NODES:
                kept += _write(subject, kind, saving, at)
    _remove(AdviceItem.objects.filter(deployment=None), kept, at)


def _write(subject: _Subject, kind: str, saving: Saving, at: datetime) -> list[int]:
    """Write the advice and return the id of its item. Empty while a request of this advice is pending."""
    rows = AdviceItem.objects.filter(kind=kind, **subject.fields)
    if rows.filter(state__in=_FOLLOWED).exists():
        return []
    values = _values(saving, at)
    current = rows.filter(state__in=ANSWERABLE).first()
    if current is not None:
        AdviceItem.objects.filter(pk=current.pk, state__in=ANSWERABLE).update(**values)
        return [current.pk]
    team = subject.deployment.team if subject.deployment else None
    try:
        with transaction.atomic():
            made = AdviceItem.objects.create(
                team=team,
                kind=kind,
                subject=subject.label,
                first_seen_at=at,
                **subject.fields,
                **values,
            )
    except IntegrityError:
        return []  # Another sweep made it.
    return [made.pk]


def _values(saving: Saving, at: datetime) -> dict[str, Any]:
    return {
        "message": saving.message,
        "evidence": [line.to_json() for line in saving.evidence],
        "formula": saving.formula,
        "risk": saving.risk.value,
        "risk_reason": saving.risk_reason,
        "cost_amount": saving.cost_amount,
        "saving_amount": saving.saving_amount,
        "proposal": saving.proposal.to_json() if saving.proposal else {},
        "computed_at": at,
    }


def _remove(rows: Any, kept: Iterable[int], at: datetime) -> None:
    """Delete open advice that no longer holds. Answered advice is kept, so that a bad week does not ask again."""
    stale = rows.filter(state=AdviceState.OPEN, computed_at__lte=at).exclude(pk__in=list(kept))
    stale.delete()


def _wake_snoozed(at: datetime) -> None:
    due = AdviceItem.objects.filter(state=AdviceState.SNOOZED, snoozed_until__lte=at)
    due.update(state=AdviceState.OPEN, snoozed_until=None)
    # What a dismissed item was about may be gone for good.
    old = at - timedelta(days=365)
    AdviceItem.objects.filter(state=AdviceState.DISMISSED, computed_at__lt=old).delete()
