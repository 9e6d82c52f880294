"""The tab Targets and its REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.models import Deployment, DeploymentEvent, ServiceTarget, TargetCount
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.targets.traffic import counted, record, set_target
from tests.deployments.world import World
from tests.page import page

TAB = "/vision/deployments/detector/targets"
FORM = {
    "metric": "availability",
    "objective_percent": "99.5",
    "window_days": "30",
    "threshold_ms": "",
}
SignIn = Callable[[User], Client]


def test_a_member_sets_a_target_and_removes_it(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    client = signed_in(world.member)

    assert client.post(TAB, FORM).status_code == 302

    row = ServiceTarget.objects.get()
    assert (row.metric, float(row.objective_percent), row.window_days) == ("availability", 99.5, 30)
    event = AuditEvent.objects.get(action="deployment.target_set")
    assert event.before == {}
    assert event.after == {
        "metric": "availability",
        "objective_percent": "99.5",
        "window_days": 30,
        "threshold_ms": None,
    }
    notes = DeploymentEvent.objects.filter(deployment=deployment, kind="target")
    assert notes.get().message == "target set: 99.5% of requests without an error, 30 days"
    assert client.post(TAB, FORM).status_code == 302
    assert AuditEvent.objects.filter(action="deployment.target_set").count() == 1
    assert client.post(TAB, {"remove": "availability"}).status_code == 302
    assert not ServiceTarget.objects.exists()
    assert AuditEvent.objects.get(action="deployment.target_removed").before == event.after


def test_the_page_says_what_is_left_and_how_fast_it_burns(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    record(world, deployment, range(120, 6000), good=9999, bad=1)
    record(world, deployment, range(120), good=95, bad=5)
    set_target(world, deployment)
    counted(world, deployment)

    shown = page(signed_in(world.viewer).get(TAB)).text

    assert "99.9% of requests without an error · 30 days" in shown
    assert "Error budget left 89.0%" in shown
    assert "6,480 of 58,812,000; 58,812 allowed" in shown
    assert "13.8% of the window. The rest was not read" in shown
    assert "50.0\N{MULTIPLICATION SIGN}1 h 50.0\N{MULTIPLICATION SIGN}5 min Firing" in shown
    assert "Set target" not in shown


def test_before_the_first_count_nothing_is_claimed(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    set_target(world, deployment)

    shown = page(signed_in(world.member).get(TAB)).text

    assert "The first count comes within two minutes" in shown
    assert "0.0%" not in shown


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("objective_percent", "100"),
        ("objective_percent", "89.9"),
        ("objective_percent", "NaN"),
        ("window_days", "9"),
        ("threshold_ms", "20"),
        ("metric", "p95"),
    ],
)
def test_what_makes_no_sense_is_refused(
    world: World, signed_in: SignIn, field: str, value: str
) -> None:
    world.serving()

    answer = signed_in(world.member).post(TAB, {**FORM, field: value})

    assert answer.status_code == 422
    assert not ServiceTarget.objects.exists()


def test_rest_sets_lists_and_removes(world: World) -> None:
    deployment = world.serving()
    record(world, deployment, range(60), good=999, bad=1)
    api = APIClient()
    api.force_authenticate(world.member)
    path = f"/api/v1/deployments/{deployment.pk}/targets"

    made = api.put(
        f"{path}/availability", {"objective_percent": "99", "window_days": 7}, format="json"
    )

    assert (made.status_code, made.json()["budget_left"]) == (200, None)
    counted(world, deployment)
    (row,) = api.get(path).json()
    assert {name: row[name] for name in ("state", "requests", "bad_requests")} == {
        "state": "met",
        "requests": 60_000,
        "bad_requests": 60,
    }
    assert row["budget_left"] == pytest.approx(0.9)
    assert row["burn_rates"][0] == {
        "factor": 14.4,
        "long_minutes": 60,
        "long_rate": pytest.approx(0.1),
        "short_minutes": 5,
        "short_rate": pytest.approx(0.1),
        "fires": False,
    }
    assert api.delete(f"{path}/availability").status_code == 204
    assert api.delete(f"{path}/availability").status_code == 404
    assert not TargetCount.objects.exists()


@pytest.mark.parametrize(
    ("metric", "body", "status"),
    [
        ("speed", {"objective_percent": "99", "window_days": 7}, 404),
        ("p95", {"objective_percent": "99", "window_days": 7}, 422),
        ("availability", {"objective_percent": "99", "window_days": 7, "threshold_ms": 1}, 422),
        ("availability", {"objective_percent": "99.999", "window_days": 7}, 422),
        ("availability", {"window_days": 7}, 422),
    ],
)
def test_rest_refuses_what_makes_no_sense(
    world: World, metric: str, body: dict[str, Any], status: int
) -> None:
    deployment = world.serving()
    api = APIClient()
    api.force_authenticate(world.member)

    answer = api.put(f"/api/v1/deployments/{deployment.pk}/targets/{metric}", body, format="json")

    assert answer.status_code in (status, 400)
    assert not ServiceTarget.objects.exists()


def test_a_retired_deployment_takes_no_target(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(is_retired=True, is_retiring=True)

    answer = signed_in(world.member).post(TAB, FORM)

    assert answer.status_code == 409
    assert not ServiceTarget.objects.exists()
