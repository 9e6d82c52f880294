"""The tab Quality and its REST: verdicts, history and the switch."""

from __future__ import annotations

from django.test import Client
from rest_framework.test import APIClient

from deployments.models import DeploymentHealth
from portal.audit.models import AuditEvent
from tests.deployments.health.test_watch import watched
from tests.deployments.health.weeks import check
from tests.deployments.world import World
from tests.page import page

_TAB = "/vision/deployments/detector/quality"


def test_the_page_shows_what_left_its_baseline_and_when(world: World) -> None:
    deployment = watched(world)
    for _ in range(3):
        check(world, deployment, latency_us=20_000)
    client = Client()
    client.force_login(world.viewer)

    shown = page(client.get(_TAB)).text

    assert "Mean latency 20 ms 10 ms Outside" in shown
    assert "Requests 1 req/s 1 req/s Within" in shown
    assert "Mean latency 20 ms is above its 7-day baseline: 10 ms at this hour" in shown
    assert "Switch off" not in shown


def test_the_page_before_the_first_check_says_so(world: World) -> None:
    world.serving()
    client = Client()
    client.force_login(world.member)

    shown = page(client.get(_TAB)).text

    assert "The first check comes within 15 minutes" in shown
    assert "No complete day of answers yet" in shown


def test_a_member_and_a_lead_switch_it_off(world: World) -> None:
    world.serving()
    client, lead = Client(), Client()
    client.force_login(world.member)
    lead.force_login(world.lead)

    assert client.post(_TAB, {"watch": "off"}).status_code == 302
    assert "member requested it: 0 of 1 approval" in page(client.get(_TAB)).text
    assert lead.post(_TAB, {"watch": "off"}).status_code == 302

    assert not DeploymentHealth.objects.get().is_on
    assert "The watch is off" in page(client.get(_TAB)).text
    event = AuditEvent.objects.filter(action="deployment.health_switched").get()
    assert (event.before, event.after) == ({"is_on": True}, {"is_on": False})
    assert client.post(_TAB, {"watch": "off"}).status_code == 302
    assert AuditEvent.objects.filter(action="deployment.health_switched").count() == 1
    assert client.post(_TAB, {"watch": "sideways"}).status_code == 302
    assert not DeploymentHealth.objects.get().is_on


def test_rest_has_the_figures_and_the_switch(world: World) -> None:
    deployment = watched(world)
    for _ in range(3):
        check(world, deployment, latency_us=20_000)
    api = APIClient()
    api.force_authenticate(world.member)
    path = f"/api/v1/deployments/{deployment.pk}/health"

    body = api.get(path).json()

    latency = next(row for row in body["metrics"] if row["metric"] == "mean_latency")
    assert latency == {
        "metric": "mean_latency",
        "verdict": "failed",
        "value": 20.0,
        "low": 10.0,
        "high": 10.0,
    }
    assert (body["verdict"], body["revision"], body["is_on"]) == ("failed", 1, True)
    records = api.get(f"{path}/history").json()
    assert [(r["kind"], r["subject"], r["verdict"]) for r in records] == [
        ("baseline", "mean_latency", "failed")
    ]
    requested = api.put(path, {"is_on": False}, format="json").json()
    assert requested["is_on"] is True
    assert "0 of 1 approval by a lead or platform admin" in requested["off_requested"]
    api.force_authenticate(world.lead)
    switched = api.put(path, {"is_on": False}, format="json").json()
    assert (switched["is_on"], switched["off_requested"]) == (False, "")
