"""The checks of a request as they come out now: before an approver decides, and before it counts.

What was told at the request may have changed since: quota, budget, room, the bucket, the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.changes.selectors import changes, evidence
from deployments.changes.services import plan_figures
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Check, Cost
from deployments.preflight.services import preflight, scaling_checks
from deployments.states import ChangeKind, ChangeState
from portal.accounts.policy import Actor
from portal.core import clock

# Whoever approves within this time of a look decides on what that look found.
_FRESH: Final = timedelta(seconds=60)
# They run the revision that serves, so that what it takes is not counted twice.
_IN_PLACE: Final = (ChangeKind.SCALE, ChangeKind.START)


@dataclass(frozen=True, slots=True)
class Turned:
    """A check that says something else than at the request. `was` None: it was not made then."""

    name: str
    was: bool | None
    now: Check

    @property
    def is_worse(self) -> bool:
        return self.now.ok is not True


@dataclass(frozen=True, slots=True)
class Recheck:
    """`checks` empty: nothing is checked for this kind of change."""

    checks: tuple[Check, ...]
    turned: tuple[Turned, ...]
    cost: Cost | None
    at: datetime

    @property
    def can_approve(self) -> bool:
        return not any(check.is_refusal for check in self.checks)


def look(*, actor: Actor, change_id: int) -> Recheck:
    """As it is now. Raises NotFound for a stranger, and when nobody decides on it any more gives
    back what was found at the request.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    if change.state != ChangeState.SUBMITTED:
        stored = tuple(Check(**row) for row in change.checks)
        return Recheck(stored, (), None, change.submitted_at or change.created_at)
    found = _made(change)
    if changes.may_decide(actor, change)[0]:
        _remember(change, found)
    return found


def require_ok(change: ChangeRequest) -> None:
    """Before an approval counts, outside a transaction: asks the cluster and the object store,
    unless a look at the same evidence has just found everything in order.

    Raises Invalid or QuotaExceeded with every refusal and its fix.
    """
    if _is_fresh(change):
        return
    found = _made(change)
    preflight.require_all(found.checks)
    _remember(change, found)


def _made(change: ChangeRequest) -> Recheck:
    spec, revision = evidence.spec_of_change(change), change.revision
    if revision is None or spec is None:
        return Recheck((), (), None, clock.now())
    found = preflight.evaluate_revision(
        deployment=change.deployment,
        version=revision.version,
        spec=spec,
        number=revision.number,
        is_in_place=change.kind in _IN_PLACE,
        overlap_seconds=plan_figures.overlap_seconds(change.deployment, change.kind, change.steps),
        without_change_id=change.pk,
    )
    checks = (*_told(change.checks, found.checks), *found.checks)
    return Recheck(checks, tuple(_turned(change.checks, checks)), found.cost, clock.now())


def _told(before: Sequence[Mapping[str, Any]], now: Iterable[Check]) -> list[Check]:
    """Which autoscaler the request got, and why: that stays true of the request, and only it knew
    that none was named.
    """
    if any(check.name == scaling_checks.NAME for check in now):
        return []
    return [Check(**row) for row in before if row["name"] == scaling_checks.NAME]


def _turned(before: Sequence[Mapping[str, Any]], now: Iterable[Check]) -> Iterable[Turned]:
    was = {row["name"]: row["ok"] for row in before}
    for check in now:
        if check.name in was and was[check.name] != check.ok:
            yield Turned(check.name, was[check.name], check)


def _remember(change: ChangeRequest, found: Recheck) -> None:
    change.last_look = {
        "at": found.at.isoformat(),
        "evidence_hash": change.evidence_hash,
        "can_approve": found.can_approve,
        "checks": [check.to_json() for check in found.checks],
    }
    ChangeRequest.objects.filter(pk=change.pk).update(last_look=change.last_look)


def _is_fresh(change: ChangeRequest) -> bool:
    look = change.last_look
    if not look or not look["can_approve"] or look["evidence_hash"] != change.evidence_hash:
        return False
    return clock.now() - datetime.fromisoformat(look["at"]) < _FRESH
