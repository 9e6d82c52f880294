"""Batch jobs that wait for a lead stand where other requests stand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.batch.selectors import waiting
from deployments.changes.services import requests as changes
from deployments.models import BatchJob
from portal.accounts import tokens
from portal.accounts.models import ApiToken, Team, User
from portal.dashboard import slots
from portal.notifications.models import Notice
from tests.deployments.batch.bench import Bench
from tests.page import page

TITLE = "Run batch job scores with detector:1"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def job(bench: Bench) -> BatchJob:
    """One that waits: the budget has no room for it."""
    bench.put_rows(3)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(10))
    job = bench.tick(bench.request(workers=2))
    assert job.state == "submitted"
    return job


def test_it_is_in_the_inbox_of_those_who_may_decide_and_counted_there(
    bench: Bench, job: BatchJob
) -> None:
    people = bench.world
    inbox = page(signed_in(people.lead).get("/approvals"))
    waiting_part = inbox.text.split("Other open requests")[0]
    assert TITLE in waiting_part
    assert "vision · eks-test · 3 rows · 2 workers · on-demand g5.xlarge" in waiting_part
    assert "0 of 1 approval by a lead or platform admin" in waiting_part
    assert "$12 at most" in waiting_part
    counts = {
        user.username: slots._count_decisions(user)
        for user in (people.lead, people.lead2, people.member, people.viewer, people.stranger)
    }
    assert counts == {"lead": 1, "lead2": 1, "member": 0, "viewer": 0, "stranger": 0}
    # Its requester finds it under the other open ones.
    own = page(signed_in(people.member).get("/approvals")).text
    before, after = own.split("Other open requests")
    assert TITLE not in before
    assert TITLE in after
    assert TITLE not in page(signed_in(people.stranger).get("/approvals")).text
    home = page(signed_in(people.lead).get("/vision")).text
    assert "Approve?" in home
    assert f"{TITLE}" in home


def test_it_stands_among_changes_by_its_age(bench: Bench, job: BatchJob) -> None:
    bench.world.clock.move(60)
    changes.request_deploy(actor=bench.world.member, draft=bench.world.draft("street"))

    text = page(signed_in(bench.world.lead).get("/approvals")).text

    assert text.index(TITLE) < text.index("Deploy detector:1 as street")


def test_a_decided_one_is_under_recently_decided_and_its_team_is_notified(
    bench: Bench, job: BatchJob
) -> None:
    client = signed_in(bench.world.lead)
    shown = client.get("/vision/batch/scores")
    assert "Approve" in page(shown).buttons
    assert (
        "2 workers start on on-demand g5.xlarge nodes and score all rows, for at most 6 h."
        in page(shown).text
    )
    client.post("/vision/batch/scores", {"decision": "approve", "comment": "go"})

    text = page(client.get("/approvals")).text
    assert TITLE in text.split("Recently decided")[1]
    assert "all caught up." in text
    notice = Notice.objects.get(event="batch.decided")
    assert notice.subject == "Batch job vision/scores: approved"
    assert notice.message == "lead approved it. go 0 of 3 rows are done."


def test_a_member_reads_why_they_cannot_decide(bench: Bench, job: BatchJob) -> None:
    shown = signed_in(bench.world.member).get("/vision/batch/scores")

    assert b"data-decision" not in shown.content
    assert (
        "Your role in vision is member. To approve change requests, you need the role admin or lead."
    ) in page(shown).text


def test_who_held_a_token_of_the_requesting_account_does_not_decide(
    bench: Bench, job: BatchJob
) -> None:
    robot = bench.world.member
    tokens.create(actor=robot, name="ci", days=30)
    User.objects.filter(pk=robot.pk).update(service_team=bench.world.team)
    ApiToken.objects.filter(user=robot).update(made_by=bench.world.lead)

    assert list(waiting.list_waiting_for(bench.world.lead)) == []
    assert list(waiting.list_waiting_for(bench.world.lead2)) == [job]
    assert "four eyes" in waiting.why_not_decide(bench.world.lead, job)


def test_the_platforms_step_up_counts_for_it(bench: Bench, job: BatchJob, settings: Any) -> None:
    settings.SLIPWAY_STEP_UP_MINUTES = 15

    answer = signed_in(bench.world.lead).post("/vision/batch/scores", {"decision": "approve"})

    assert answer.status_code == 403
    assert "Confirm" in page(answer).text
    job.refresh_from_db()
    assert job.state == "submitted"


def test_rest_lists_what_waits_for_the_reader(bench: Bench, job: BatchJob) -> None:
    changes.request_deploy(actor=bench.world.member, draft=bench.world.draft("street"))
    lead, member = APIClient(), APIClient()
    lead.force_authenticate(bench.world.lead)
    member.force_authenticate(bench.world.member)

    rows = lead.get("/api/v1/approvals").json()["results"]

    assert [(row["kind"], row["title"]) for row in rows] == [
        ("batch-job", TITLE),
        ("deployment", "Deploy detector:1 as street"),
    ]
    assert rows[0]["path"] == "/vision/batch/scores"
    assert (rows[0]["id"], rows[0]["team"], rows[0]["requester"]) == (job.pk, "vision", "member")
    only = lead.get("/api/v1/approvals", {"kind": "batch-job", "team": "vision"}).json()["results"]
    assert [row["kind"] for row in only] == ["batch-job"]
    first = lead.get("/api/v1/approvals", {"limit": "1"}).json()
    assert [row["kind"] for row in first["results"]] == ["batch-job"]
    second = lead.get(first["next"]).json()
    assert [row["kind"] for row in second["results"]] == ["deployment"]
    assert second["next"] is None
    assert lead.get("/api/v1/approvals", {"team": "nlp"}).json()["results"] == []
    assert member.get("/api/v1/approvals").json()["results"] == []
    mine = {"waiting_for_me": "true"}
    assert [row["id"] for row in lead.get("/api/v1/batch-jobs", mine).json()["results"]] == [job.pk]
    assert member.get("/api/v1/batch-jobs", mine).json()["results"] == []
    address = f"/api/v1/batch-jobs/{job.pk}"
    assert lead.get(address).json()["why_not_decide"] == ""
    assert "you need the role" in member.get(address).json()["why_not_decide"]
