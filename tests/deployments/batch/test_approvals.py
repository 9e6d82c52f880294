"""Quota and budget of batch jobs, and deciding on those that the budget has no room for."""

from __future__ import annotations

from decimal import Decimal

import pytest

from deployments.batch.services import (
    decisions,
    requests,
)
from deployments.models import BatchJob
from portal.accounts.models import Team
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from portal.notifications.models import Notice
from tests.deployments.batch.bench import Bench


def test_quota_counts_other_jobs(bench: Bench) -> None:
    bench.request(workers=5)
    with pytest.raises(Invalid, match="4 GPUs are needed and 3 of 8 are left"):
        bench.request("other", workers=4)
    assert bench.request("other", workers=3).state == "planning"


@pytest.mark.parametrize(("workers", "needed"), [(1, "1 GPU is needed"), (2, "2 GPUs are needed")])
def test_quota_counts_the_gpus_of_a_job(bench: Bench, workers: int, needed: str) -> None:
    bench.request(workers=8)

    with pytest.raises(Invalid, match=f"^{needed} and 0 of 8 are left for vision"):
        bench.request("other", workers=workers)


def test_above_the_budget_another_lead_decides(bench: Bench) -> None:
    bench.put_rows(1)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(10))
    job = bench.request(workers=2)
    bench.tick(job)

    assert job.state == "submitted"
    assert job.state_reason == "It can cost $12; with it the month comes to $12 of $10."
    assert bench.world.cluster.writes == []
    assert Notice.objects.get().event == "batch.requested"
    people = bench.world
    for actor, error in (
        (people.member, Forbidden),
        (people.viewer, Forbidden),
        (people.stranger, NotFound),
    ):
        with pytest.raises(error):
            decisions.approve(actor=actor, job_id=job.pk)
    with pytest.raises(Invalid, match="Give a reason"):
        decisions.reject(actor=people.lead, job_id=job.pk)
    decisions.approve(actor=people.lead, job_id=job.pk, comment="go")
    job.refresh_from_db()
    assert (job.state, job.decided_by) == ("running", people.lead)
    with pytest.raises(Conflict):
        decisions.approve(actor=people.lead2, job_id=job.pk)


def test_who_requests_it_does_not_approve_it(bench: Bench) -> None:
    bench.put_rows(1)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(1))
    job = requests.request(actor=bench.world.lead, team_slug="vision", draft=bench.draft())
    bench.tick(job)
    with pytest.raises(Forbidden, match="four eyes"):
        decisions.approve(actor=bench.world.lead, job_id=job.pk)
    decisions.reject(actor=bench.world.lead2, job_id=job.pk, comment="no")
    job.refresh_from_db()
    assert (job.state, job.state_reason, job.next_check_at) == ("rejected", "no", None)
    # Its output can be used again.
    assert bench.request("again", output=job.output).state == "planning"


def test_a_binding_budget_refuses_it(bench: Bench) -> None:
    Team.objects.filter(slug="vision").update(
        monthly_budget_amount=Decimal(10), is_budget_binding=True
    )
    with pytest.raises(Invalid, match=r"of \$10\. Use fewer workers or hours"):
        bench.request(workers=2)
    assert not BatchJob.objects.exists()


def test_a_price_that_is_not_known_needs_approval(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.request(capacity="spot")
    bench.tick(job)
    assert (job.state, job.cost_limit_amount) == ("submitted", None)
    assert job.state_reason == "The price of its nodes is not known."


def test_nobody_decides_in_time(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.request(capacity="spot")
    bench.tick(job)
    bench.tick(job, seconds=7 * 86400)
    assert (job.state, "No decision was made" in job.state_reason) == ("failed", True)
