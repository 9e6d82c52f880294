"""Measure the cost of a deployment after a change that advice requested, against the promised saving."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from deployments.models import AdviceItem
from deployments.states import CHANGE, AdviceState, ChangeState
from fleet.costs.selectors import hours
from fleet.gpus.domain.intervals import HOUR, hour_of
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH
from portal.core import clock

CHECK_AFTER: Final = timedelta(days=30)
# Hours in which the cluster was unreachable are never sealed; the others are then measured.
WAIT_FOR_HOURS: Final = timedelta(days=7)


def follow() -> None:
    """Follow the change requests of requested advice, and measure what was applied for 30 days."""
    requested = AdviceItem.objects.filter(state=AdviceState.REQUESTED).select_related("change")
    for item in requested:
        _follow_request(item)
    applied = AdviceItem.objects.filter(state=AdviceState.APPLIED)
    for item in applied.select_related("deployment__team"):
        _measure(item, clock.now())


def _follow_request(item: AdviceItem) -> None:
    change = item.change
    rows = AdviceItem.objects.filter(pk=item.pk, state=AdviceState.REQUESTED)
    if change is None or CHANGE[ChangeState(change.state)]:
        return
    if change.state == ChangeState.DONE:
        rows.update(state=AdviceState.APPLIED, applied_at=change.finished_at or clock.now())
    else:
        rows.update(state=AdviceState.OPEN, change=None)


def _measure(item: AdviceItem, now: datetime) -> None:
    """Measure whole sealed hours only; the hour of the change itself is a mixture."""
    if item.deployment is None or item.applied_at is None:
        return
    start = hour_of(item.applied_at) + HOUR
    end = start + CHECK_AFTER
    deployment = item.deployment
    sealed = hours.count_sealed(cluster_id=deployment.cluster_id, start=start, end=end)
    is_whole = sealed >= CHECK_AFTER // HOUR
    is_over = now >= end and (is_whole or now >= end + WAIT_FOR_HOURS)
    rows = AdviceItem.objects.filter(pk=item.pk, state=AdviceState.APPLIED)
    state = AdviceState.CHECKED if is_over else AdviceState.APPLIED
    if not sealed:
        rows.update(state=state)
        return
    spent = hours.sum_cost(
        team_slug=deployment.team.slug, deployment=deployment.name, start=start, end=end
    )
    month = (spent * HOURS_PER_MONTH / sealed).quantize(CENT)
    rows.update(realised_amount=item.cost_amount - month, realised_hours=sealed, state=state)
