"""The resources that the batch jobs of a team hold: GPUs until they end, and dollars until their deadlines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from deployments.models import BatchJob
from fleet.costs.domain.forecast import hours_until
from fleet.gpus.domain.money import CENT
from portal.accounts.models import Team


@dataclass(frozen=True, slots=True)
class HeldByJobs:
    """The resources that jobs hold. `left_amount` is the most that the jobs can still cost in this month; None
    if a price is not known.
    """

    gpus: int
    left_amount: Decimal | None


def sum_held(team: Team, *, at: datetime, without_job_id: int | None = None) -> HeldByJobs:
    """Sum what is held by jobs that run, or start without a further decision. A job that waits for approval
    holds nothing.
    """
    rows = BatchJob.objects.filter(team=team, state__in=BatchJob.HOLDING)
    if without_job_id is not None:
        rows = rows.exclude(pk=without_job_id)
    gpus, left = 0, Decimal(0)
    is_known = True
    for state, pods, limit, deadline in rows.order_by().values_list(
        "state", "pods", "cost_limit_amount", "deadline_at"
    ):
        gpus += int(pods.get("workers", 1))
        if limit is None:
            is_known = False
        elif state == BatchJob.STOPPING:
            # Its pods end within a minute or so.
            continue
        elif state == BatchJob.PLANNING:
            left += limit
        elif deadline is not None:
            left += min(limit, limit / int(pods.get("hours", 1)) * hours_until(deadline, at))
    return HeldByJobs(gpus, left.quantize(CENT) if is_known else None)
