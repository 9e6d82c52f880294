"""Repeats the checks of a request: when its page opens, and before an approval counts.

Quota, budget, free GPUs, the bucket and the cluster may have changed since the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.changes.selectors import changes
from deployments.changes.selectors.evidence import ReviewedChange
from deployments.changes.selectors.subjects import Rendered, subject_of
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Check, Cost, LastRecheck
from deployments.states import ChangeState
from portal.accounts.policy import Actor
from portal.core import clock

# An approval relies on a recheck that is not older than this.
_FRESH: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ChangedCheck:
    """A check whose result differs from the request's.

    `was` is None if it was not known then, or the request had no such check, as for a rule that an admin made
    since.
    """

    name: str
    was: bool | None
    now: Check

    @property
    def is_worse(self) -> bool:
        return self.now.ok is not True


@dataclass(frozen=True, slots=True)
class Recheck:
    """The result of repeated checks. `checks` is empty if this kind of change has none."""

    checks: tuple[Check, ...]
    changed: tuple[ChangedCheck, ...]
    cost: Cost | None
    at: datetime

    @property
    def can_approve(self) -> bool:
        return not any(check.is_refusal for check in self.checks)


def repeat(*, actor: Actor, change_id: int) -> Recheck:
    """Run the checks again; for a closed request, return its stored checks. Raises NotFound for a
    stranger.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    if change.state != ChangeState.SUBMITTED:
        stored = _stored(change)
        return Recheck(stored, (), None, change.submitted_at or change.created_at)
    recheck = _run(change, subject_of(change).render(change))
    if changes.may_decide(actor, change)[0]:
        _store(change, recheck)
    return recheck


def require_ok(change: ChangeRequest, reviewed: ReviewedChange) -> None:
    """Repeat the checks before an approval counts. Raises Invalid or QuotaExceeded with every refusal and its fix.

    Call it outside a transaction: it calls the cluster and the object store, unless a fresh recheck of the same
    evidence passed.
    """
    if _is_fresh(change):
        return
    recheck = _run(change, reviewed.rendered)
    reviewed.subject.require_all(recheck.checks)
    _store(change, recheck)


def _run(change: ChangeRequest, rendered: Rendered | None) -> Recheck:
    checks, cost = subject_of(change).checks(change, rendered)
    return Recheck(checks, tuple(_changed(_stored(change), checks)), cost, clock.now())


def _stored(change: ChangeRequest) -> tuple[Check, ...]:
    return tuple(map(Check.from_json, change.checks))


def _changed(before: Sequence[Check], now: Sequence[Check]) -> Iterator[ChangedCheck]:
    """Yield the changed checks. A check that is new since the request is a change unless it passes."""
    was = {check.name: check.ok for check in before}
    for check in now:
        is_changed = was[check.name] != check.ok if check.name in was else check.ok is not True
        if is_changed:
            yield ChangedCheck(check.name, was.get(check.name), check)


def _store(change: ChangeRequest, recheck: Recheck) -> None:
    change.last_recheck = LastRecheck(
        recheck.at, change.evidence_hash, recheck.can_approve, recheck.checks
    ).to_json()
    ChangeRequest.objects.filter(pk=change.pk).update(last_recheck=change.last_recheck)


def _is_fresh(change: ChangeRequest) -> bool:
    last = LastRecheck.from_json(change.last_recheck)
    if last is None or not last.can_approve or last.evidence_hash != change.evidence_hash:
        return False
    return clock.now() - last.at < _FRESH
