"""What a batch job would cost, before it is requested; and what running ones leave to others."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.batch.domain.states import BatchState
from deployments.batch.services import decisions, requests
from deployments.models import BatchJob, Deployment
from deployments.preflight.selectors import quotas
from deployments.preflight.services import preflight
from fleet.models import InstancePrice, Workload
from portal.accounts.models import Team
from portal.core.errors import Invalid
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.test_api import body_of
from tests.page import page

FORM = {
    "gpus": "eks-test g5.xlarge nvidia.com/gpu",
    "capacity": "spot",
    "workers": "2",
    "requests": "4",
    "hours": "3",
    "error_limit": "0",
    "cpu": "2",
    "memory": "8Gi",
}


@pytest.fixture
def spot(bench: Bench) -> None:
    price = InstancePrice.objects.get(instance_type="g5.xlarge", capacity_type="on-demand")
    price.pk, price.capacity_type, price.usd_per_hour_amount = None, "spot", Decimal("0.4")
    price.save(force_insert=True)


def typed(bench: Bench, **changed: str) -> Any:
    client = Client()
    client.force_login(bench.world.member)
    headers = {"HX-Request": "true", "HX-Target": "batch-estimate"}
    return client.post("/vision/batch/new", {**FORM, **changed}, headers=headers)


def test_the_form_shows_the_cost_while_it_is_filled_in(bench: Bench, spot: None) -> None:
    answer = typed(bench)
    card = page(answer)
    assert answer.status_code == 200
    assert card.term("While it runs").startswith("$0.80/h")
    assert card.term("At most, until the deadline").startswith("$2.40")
    assert card.term("On on-demand nodes") == "$2.01/hat most $6.04"
    assert "It starts at once" in card.text
    assert "errors" not in card.text

    dearer = page(typed(bench, capacity="on-demand", hours="10"))
    assert dearer.term("At most, until the deadline").startswith("$20")
    assert dearer.term("On spot nodes") == "$0.80/hat most $8.00"
    assert "Fits now" in dearer.text
    assert not BatchJob.objects.exists()


def test_the_form_says_what_stands_in_its_way(bench: Bench) -> None:
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(1))
    assert (
        "A lead must approve it. It can cost $6.04; with it the month comes to $6.04 of $1.00."
        in (page(typed(bench, capacity="on-demand")).text)
    )
    over = page(typed(bench, capacity="on-demand", workers="9")).text
    assert "9 GPUs are needed and 8 of 8 are left for vision." in over
    assert "$27" in over
    unknown = page(typed(bench)).text
    assert "A lead must approve it. The price of its nodes is not known." in unknown
    broken = page(typed(bench, workers="many")).text
    assert "Fix Workers to see the cost." in broken


def test_the_page_has_the_estimate_of_its_defaults(bench: Bench, spot: None) -> None:
    client = Client()
    client.force_login(bench.world.member)
    assert page(client.get("/vision/batch/new")).term("While it runs").startswith("$0.40/h")


def test_rest_has_a_dry_run(bench: Bench, spot: None) -> None:
    client = APIClient()
    client.force_authenticate(bench.world.member)
    url = "/api/v1/batch-jobs/check"

    shown = client.post(url, body_of(bench, workers=2, capacity="spot"), format="json")

    assert shown.status_code == 200, shown.json()
    body = shown.json()
    assert Decimal(body["per_hour"]) == Decimal("0.8")
    assert Decimal(body["cost_limit"]) == Decimal("4.8")
    assert Decimal(body["on_demand"]["cost_limit"]) == Decimal("12.07")
    assert body["spot"] == {"per_hour": body["per_hour"], "cost_limit": body["cost_limit"]}
    assert (body["fits_now"], body["why_approval"]) == (False, "")
    assert "no spot g5.xlarge node" in body["capacity"]
    refused = client.post(url, body_of(bench, output="s3://elsewhere/x/"), format="json")
    assert (refused.status_code, "output" in str(refused.json())) == (422, True)
    assert not BatchJob.objects.exists()


def test_deployments_find_the_gpus_of_jobs_taken(bench: Bench) -> None:
    assert {str(state) for state in BatchState} >= set(BatchJob.HOLDING)
    bench.put_rows(1)
    world, team = bench.world, bench.world.team
    Team.objects.filter(pk=team.pk).update(monthly_budget_amount=Decimal(10_000))
    team.refresh_from_db()
    before = _preflight(bench)
    job = bench.running(workers=8)

    assert quotas.committed_gpus(team, []) == 8
    after = _preflight(bench)
    quota = next(check for check in after.checks if check.name == "Quota")
    assert (quota.ok, quota.detail) == (False, "9 of 8 GPUs of vision after this.")
    # 8 workers at $1.006 until the deadline of 6 hours.
    assert before.cost.forecast is not None
    more = after.cost.forecast - before.cost.forecast
    # Ten seconds later, street itself costs less than a cent less.
    assert more in (Decimal("48.28"), Decimal("48.29"))

    requests.cancel(actor=world.member, job_id=job.pk)
    bench.tick(job)
    assert quotas.committed_gpus(team, []) == 0
    assert not Deployment.objects.filter(name="street").exists()


def _preflight(bench: Bench) -> Any:
    return preflight.check(actor=bench.world.member, draft=bench.world.draft("street"))


def test_the_job_that_waits_holds_nothing_and_is_refused_when_the_gpus_are_gone(
    bench: Bench,
) -> None:
    bench.put_rows(1)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(1))
    job = bench.tick(bench.request(workers=5))
    assert job.state == "submitted"
    assert quotas.committed_gpus(bench.world.team, []) == 0
    Team.objects.filter(slug="vision").update(quota_gpus=4)

    with pytest.raises(Invalid, match="5 GPUs are needed and 4 of 4 are left"):
        decisions.approve(actor=bench.world.lead, job_id=job.pk)

    job.refresh_from_db()
    assert (job.state, job.decided_by) == ("submitted", None)


def test_its_workload_ends_at_the_deadline(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.running(hours=2)
    workload = Workload.objects.get()
    assert workload.ends_at is not None
    assert job.started_at is not None
    assert workload.ends_at == job.deadline_at
    assert workload.ends_at - job.started_at == timedelta(hours=2, minutes=10)
