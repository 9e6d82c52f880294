"""The home of platform admins: what fails, who waits, money, clusters, and the portal's own parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.models import Alert, Deployment
from deployments.states import DeploymentState
from fleet.models import Cluster, Pod
from portal.accounts.models import Team, User
from portal.core import heartbeats
from tests.accounts import make_team, make_user
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import Part, page
from tests.portal.dashboard.test_home import measure

SignIn = Callable[[User], Client]


@pytest.fixture
def admin(world: World, signed_in: SignIn) -> Client:
    return signed_in(world.admin)


def rows_of(shown: Part, title: str) -> list[str]:
    """Return the texts of the rows of the card with this title."""
    card = next(part for part in shown.all("section") if next(part.all("h2"), Part()).text == title)
    return [row.text for body in card.all("tbody") for row in body.all("tr")]


def test_only_platform_admins_have_it(admin: Client, world: World, signed_in: SignIn) -> None:
    assert page(admin.get("/")).text.count("Parts of the portal") == 1
    assert signed_in(world.lead).get("/")["Location"] == "/vision"
    assert page(admin.get("/vision")).links["Home"] == "/"
    assert page(signed_in(world.lead).get("/vision")).links["Home"] == "/vision"


def test_failures_of_every_team_are_named_with_their_team(admin: Client, world: World) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(
        state=DeploymentState.DEGRADED, state_reason="out of GPU memory"
    )
    Alert.objects.create(
        team=make_team(slug="audio"),
        kind="queue_depth",
        key="deployment 7",
        subject="Queue of speech",
        message="Requests wait.",
        path="/audio/deployments/speech",
        opened_at=world.clock.at,
    )

    shown = page(admin.get("/"))

    failing = rows_of(shown, "Failures and alerts")
    assert [row.split()[1] for row in failing] == ["vision/detector", "Queue"]
    assert "out of GPU memory" in failing[0]
    assert shown.links["Queue of speech"] == "/audio/deployments/speech"


def test_an_admin_dismisses_what_fails_for_themselves(
    admin: Client, world: World, signed_in: SignIn
) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(
        state=DeploymentState.DEGRADED, state_reason="out of GPU memory"
    )
    name = "Dismiss vision/detector until it changes"
    other = signed_in(make_user("admin2", is_platform_admin=True))

    assert send_form(admin, name) == (303, "/")
    shown = page(admin.get("/"))
    polled = page(admin.get("/", **HTMX, HTTP_HX_TARGET="platform"))

    assert all("out of GPU memory" not in one.text for one in (shown, polled))
    assert "1 dismissed until it changes." in shown.text
    assert shown.term("Failing").startswith("1 deployment")
    assert "out of GPU memory" in page(other.get("/")).text
    assert send_form(admin, "Show again") == (303, "/")
    assert "out of GPU memory" in page(admin.get("/")).text


def send_form(client: Client, button: str) -> tuple[int, str]:
    """Press a button of the page, as a browser without JavaScript sends its form."""
    form = next(form for form in page(client.get("/")).all("form") if button in form.buttons)
    fields = {part.attributes["name"]: part.attributes["value"] for part in form.all("input")}
    answer = client.post(form.attributes["action"], fields)
    return answer.status_code, answer["Location"]


def test_pods_that_wait_longest_come_first(admin: Client, world: World) -> None:
    for name, minutes in (("late", 2), ("early", 9)):
        Pod.objects.create(
            cluster_id=world.cluster_id,
            namespace="vision",
            name=name,
            uid=name,
            phase="Pending",
            reason="Unschedulable",
            message="1 Insufficient nvidia.com/gpu.",
            gpu_resource="nvidia.com/gpu",
            gpu_units=1,
            created_at=world.clock.at - timedelta(minutes=minutes),
        )

    shown = page(admin.get("/"))

    waiting = rows_of(shown, "Waiting for a GPU")
    assert [("early" in row, "9 min ago" in row) for row in waiting] == [
        (True, True),
        (False, False),
    ]
    assert "Insufficient nvidia.com/gpu" in waiting[0]


def test_money_shows_teams_above_their_budget_first(admin: Client, world: World) -> None:
    make_team(slug="audio")
    Team.objects.filter(slug="audio").update(monthly_budget_amount=Decimal(100))
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal("0.01"))
    assert rows_of(page(admin.get("/")), "Money against budgets")[0].startswith("audio")
    world.serving()
    measure(world, requests=1, failures=0)

    shown = page(admin.get("/"))

    first, second = rows_of(shown, "Money against budgets")[:2]
    assert first.startswith("vision ")
    assert re.match(r"audio \$0(\.00)? \$100(\.00)? ", second)
    assert "1 team above budget at the current rate" in shown.text
    assert shown.links["vision"] == "/costs?team=vision"


def test_a_part_without_a_sign_of_life_is_named(
    admin: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = {"delivery": world.clock.at, "telemetry": world.clock.at - timedelta(minutes=5)}
    monkeypatch.setattr(heartbeats, "last", signs.get)
    monkeypatch.setattr(heartbeats, "count_messages", {"delivery": 0, "telemetry": 12}.__getitem__)
    monkeypatch.setattr("portal.celery_config.QUEUES", ["delivery", "telemetry"])
    Cluster.objects.filter(pk=world.cluster_id).update(
        watch_seen_at=world.clock.at - timedelta(hours=1)
    )
    name = Cluster.objects.get(pk=world.cluster_id).name

    parts = rows_of(page(admin.get("/")), "Parts of the portal")

    assert parts[0].startswith("Scheduler Starts the sweeps that find work. Running")
    assert parts[1].startswith("Queue delivery No message waits. Running")
    assert parts[2].startswith("Queue telemetry Workers are busy or gone; 12 waiting. Late 5 min")
    assert parts[3].startswith(f"Watcher of {name} Changes are found by sweeps only. Late 1 h")


def test_what_gave_no_sign_yet_is_not_called_broken(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A portal that has just started has heard of none of its parts."""
    monkeypatch.setattr(heartbeats, "last", lambda queue: None)

    shown = page(admin.get("/"))

    parts = rows_of(shown, "Parts of the portal")
    assert parts[0].startswith("Scheduler Gives a sign every 30 seconds.")
    assert all("Not seen yet" in row for row in parts if row.startswith(("Scheduler", "Queue")))


def test_without_the_broker_the_page_says_so(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(queue: str) -> int:
        raise redis.ConnectionError(queue)

    monkeypatch.setattr(heartbeats, "count_messages", refuse)

    parts = rows_of(page(admin.get("/")), "Parts of the portal")

    assert parts[0].startswith("Broker Tasks run late until it is back. Unreachable")


def test_polling_gets_the_part_and_as_many_queries_for_many_teams(
    admin: Client, world: World, django_assert_num_queries: Any
) -> None:
    part = page(admin.get("/", **HTMX, HTTP_HX_TARGET="platform"))
    assert not part.is_whole_page
    with CaptureQueriesContext(connection) as few:
        admin.get("/")
    for number in range(12):
        make_team(slug=f"team{number}")

    with django_assert_num_queries(len(few)):
        admin.get("/")


def test_polls_share_what_all_admins_see_and_the_page_itself_is_of_now(
    admin: Client, world: World
) -> None:
    def poll() -> Part:
        return page(admin.get("/", **HTMX, HTTP_HX_TARGET="platform"))

    poll()
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(state=DeploymentState.DEGRADED)

    assert "vision/detector" not in poll().text
    assert "1 deployment" in page(admin.get("/")).text
