"""The charts of a deployment over hours and days, with their gaps and marks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.models import ChangeRequest, Deployment, DeploymentEvent
from fleet.models import Cluster, Workload, WorkloadHour, WorkloadMinute
from portal.accounts.models import User
from tests.deployments.signed_in import HTMX, start_canary
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]
ONE = "/vision/deployments/detector"
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def deployment(world: World) -> Deployment:
    """A deployment that is ready for two weeks, at a whole hour."""
    deployment = world.serving()
    at = world.clock.at.replace(minute=0, second=0, microsecond=0) + HOUR
    world.clock.at = at
    ready_at = at - timedelta(days=14)
    Deployment.objects.update(created_at=ready_at, first_ready_at=ready_at)
    DeploymentEvent.objects.all().delete()
    ChangeRequest.objects.update(finished_at=ready_at)
    note(deployment, ready_at, "state", "ready")
    return deployment


def note(deployment: Deployment, at: datetime, kind: str, message: str, number: int = 1) -> None:
    DeploymentEvent.objects.create(
        deployment=deployment, at=at, kind=kind, message=message, revision_number=number
    )


def observe(at: datetime, requests: int, latency_ms: int = 4) -> None:
    WorkloadMinute.objects.create(
        workload=Workload.objects.get(name="detector-r1"),
        start=at,
        request_success=requests,
        request_duration_us=requests * latency_ms * 1000,
        observed_ms=60_000,
    )


def table(shown: Part, name: str) -> list[list[str]]:
    """The rows below the header of a chart's table."""
    rows = list(shown.part(f"chart-{name}").all("tr"))[1:]
    return [[cell.text.replace("—", "") for cell in row.all("td")] for row in rows]


@pytest.mark.parametrize(
    ("name", "text", "description"),
    [
        ("", "1 h", "last hour, per minute"),
        ("6h", "6 h", "last 6 hours, per 2 minutes"),
        ("24h", "24 h", "last 24 hours, per 5 minutes"),
        ("7d", "7 d", "last 7 days, per hour"),
        ("100y", "1 h", "last hour, per minute"),
    ],
)
def test_a_range_is_a_link_and_the_title_says_it(
    world: World, signed_in: SignIn, deployment: Deployment, name: str, text: str, description: str
) -> None:
    client = signed_in(world.viewer)

    charts = page(client.get(f"{ONE}?range={name}")).part("overview-charts")

    links = {link.text: link for link in charts.all("a")}
    assert list(links) == ["1 h", "6 h", "24 h", "7 d"]
    assert [one for one, link in links.items() if "aria-current" in link.attributes] == [text]
    assert charts.text.count(description) == 2
    assert client.get(f"{ONE}{links['7 d'].attributes['href']}").status_code == 200


def test_the_poll_keeps_the_range(world: World, signed_in: SignIn, deployment: Deployment) -> None:
    client = signed_in(world.viewer)
    shown = page(client.get(f"{ONE}?range=7d"))
    world.clock.move(60)

    address = shown.part("deployment-head").attributes["hx-get"]
    polled = page(client.get(address, **HTMX, HTTP_HX_TARGET="deployment-head"))

    assert "last 7 days, per hour" in polled.part("overview-charts").text
    assert "range=7d" in polled.part("deployment-head").attributes["hx-get"]


def test_six_hours_are_read_by_two_minutes(
    world: World, signed_in: SignIn, deployment: Deployment
) -> None:
    end = world.clock.at
    for ago, requests in ((4, 60), (3, 180), (2, 0), (1, 120)):
        observe(end - ago * MINUTE, requests)

    shown = page(signed_in(world.viewer).get(f"{ONE}?range=6h"))

    gap, first, second = table(shown, "requests")
    assert gap[1] == "no readings"
    assert [first[0], second[0]] == [f"{end - ago * MINUTE:%Y-%m-%d %H:%M}" for ago in (4, 2)]
    assert [first[1], second[1]] == ["2", "1"]
    assert [row[1] for row in table(shown, "latency")] == ["no readings", "4.0 ms", "4.0 ms"]


def test_a_week_is_read_by_hour(world: World, signed_in: SignIn, deployment: Deployment) -> None:
    end = world.clock.at
    workload = Workload.objects.get(name="detector-r1")
    for ago, requests in ((30, 7200), (2, 3600)):
        WorkloadHour.objects.create(
            workload=workload,
            start=end - ago * HOUR,
            request_success=requests,
            observed_ms=3_600_000,
        )

    shown = page(signed_in(world.viewer).get(f"{ONE}?range=7d"))

    assert [row[1] for row in table(shown, "requests")] == [
        "no readings",
        "2",
        "no readings",
        "1",
        "no readings",
    ]


def test_gaps_say_why_and_changes_are_in_their_rows(
    world: World, signed_in: SignIn, deployment: Deployment
) -> None:
    end = world.clock.at
    for ago in (60, 59, 30, 29, 20, 19):
        observe(end - ago * MINUTE, 0 if ago == 29 else 60)
    note(deployment, end - 58 * MINUTE, "state", "stopped")
    note(deployment, end - 58 * MINUTE, "caller key", "key created")
    note(deployment, end - 33 * MINUTE, "state", "progressing: loading the model")
    note(deployment, end - 30 * MINUTE, "state", "ready")
    note(deployment, end - 27 * MINUTE, "unreachable", "The cluster did not answer.")
    note(deployment, end - 19 * MINUTE, "rollout started", "r2 replaces r1", 2)
    ChangeRequest.objects.update(
        kind="scale",
        state="done",
        scale={"min_replicas": 2, "max_replicas": 2},
        finished_at=end - 20 * MINUTE,
    )

    shown = page(signed_in(world.viewer).get(ONE))

    # At 29 minutes ago there were readings, but no request to take time.
    assert [row[1:] for row in table(shown, "latency")] == [
        ["4.0 ms", ""],
        ["4.0 ms", ""],
        ["stopped", "stopped"],
        ["not ready", ""],
        ["4.0 ms", "ready"],
        ["no requests", ""],
        ["cluster not reachable", "cluster not reachable"],
        ["4.0 ms", "scaled to 2 replicas"],
        ["4.0 ms", "r2 rollout began"],
        ["no readings", ""],
    ]
    assert [row[1] for row in table(shown, "requests")][4:6] == ["1", "0"]
    assert (
        "stopped, not ready, no requests, cluster not reachable, no readings"
        in shown.part("chart-latency").text
    )


def test_what_a_stopped_deployment_lacks_is_known_from_before_the_range(
    world: World, signed_in: SignIn, deployment: Deployment
) -> None:
    end = world.clock.at
    observe(end - 10 * MINUTE, 60)
    note(deployment, end - 90 * MINUTE, "state", "stopped")
    note(deployment, end - 12 * MINUTE, "state", "ready")

    rows = table(page(signed_in(world.viewer).get(ONE)), "requests")

    assert [row[1:] for row in rows] == [
        ["stopped", ""],
        ["no readings", "ready"],
        ["1", ""],
        ["no readings", ""],
    ]


def test_a_chart_without_values_is_a_sentence(
    world: World, signed_in: SignIn, deployment: Deployment
) -> None:
    client = signed_in(world.viewer)
    texts = [page(client.get(ONE)).part("overview-charts").text]
    observe(world.clock.at - MINUTE, 0)
    idle = page(client.get(ONE)).part("overview-charts")
    WorkloadMinute.objects.all().delete()
    note(deployment, world.clock.at - 3 * HOUR, "state", "stopped")
    texts.append(page(client.get(f"{ONE}?range=6h")).part("overview-charts").text)
    Cluster.objects.update(is_reachable=False, last_seen_at=world.clock.at - 2 * HOUR)
    texts.append(page(client.get(ONE)).part("overview-charts").text)

    assert [text.count("No readings in the last hour.") for text in texts] == [2, 0, 0]
    assert texts[1].count("No readings in the last 6 hours: stopped.") == 2
    assert texts[2].count("No readings in the last hour: cluster not reachable.") == 2
    assert "No requests in the last hour." in idle.text
    assert [one.attributes["id"] for one in idle.all("figure")] == ["chart-requests"]


def test_a_range_costs_as_many_queries_for_any_number_of_events(
    world: World, signed_in: SignIn
) -> None:
    deployment, _ = start_canary(world)
    client = signed_in(world.viewer)
    # The first page of a session also writes that it was used.
    _count_queries(client)
    counts = [_count_queries(client)]
    for minute in range(40):
        note(deployment, world.clock.at - minute * MINUTE, "state", "degraded")
    counts.append(_count_queries(client))

    assert counts[0] == counts[1]


def _count_queries(client: Client) -> int:
    with CaptureQueriesContext(connection) as queries:
        client.get(f"{ONE}?range=7d")
    return len(queries)
