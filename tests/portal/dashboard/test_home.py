from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.changes.services import requests
from deployments.models import Alert, Deployment, ModelVersion
from deployments.states import DeploymentState, VersionState
from fleet.models import GpuLease, Node, Workload, WorkloadMinute
from portal.accounts.models import Team, User
from tests.accounts import make_membership, make_team, make_user
from tests.deployments.canaries import serve
from tests.deployments.signed_in import HTMX, start_canary
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
QUERIES = 37


def measure(world: World, requests: int, failures: int) -> None:
    """One whole minute of the workload's traffic, and one GPU used for ten days."""
    workload = Workload.objects.get(name="detector-r1")
    at = world.clock.at
    WorkloadMinute.objects.create(
        workload=workload,
        start=at.replace(second=0, microsecond=0) - timedelta(minutes=1),
        observed_ms=60_000,
        request_success=requests - failures,
        request_failure=failures,
        request_duration_us=(requests - failures) * 5000,
    )
    GpuLease.objects.create(
        cluster_id=world.cluster_id,
        node=Node.objects.earliest("pk"),
        workload=workload,
        pod_uid="u1",
        pod_name="detector-r1-abc",
        namespace="vision",
        team_slug="vision",
        share_ppm=1_000_000,
        started_at=at,
        changed_at=at,
    )


def test_a_lead_sees_what_waits_for_them(world: World, signed_in: SignIn) -> None:
    requests.request_deploy(actor=world.member, draft=world.draft("street"))

    page = signed_in(world.lead).get("/vision").content.decode()

    assert "Approve?" in page
    assert "Deploy detector:1 as street" in page


def test_the_requester_is_not_asked_to_approve_their_own(world: World, signed_in: SignIn) -> None:
    requests.request_deploy(actor=world.member, draft=world.draft("street"))

    assert "Approve?" not in signed_in(world.member).get("/vision").content.decode()


def test_a_promotable_rollout_shows_up_for_the_lead(world: World, signed_in: SignIn) -> None:
    deployment, _ = start_canary(world)
    world.clock.move(61)
    serve(world, deployment, 10)

    page = signed_in(world.lead).get("/vision").content.decode()

    assert "Promote?" in page
    assert "detector 10% → 50%" in page


def test_failing_deployments_and_quarantines_are_listed_with_their_reason(
    world: World, signed_in: SignIn
) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(
        state=DeploymentState.DEGRADED, state_reason="out of GPU memory"
    )
    ModelVersion.objects.filter(pk=world.version2.pk).update(
        state=VersionState.QUARANTINED, state_reason="a pickle that runs code"
    )

    page = signed_in(world.viewer).get("/vision").content.decode()

    assert "Failing" in page
    assert "out of GPU memory" in page
    assert "a pickle that runs code" in page


def test_figures_follow_what_was_measured(world: World, signed_in: SignIn) -> None:
    world.serving()
    measure(world, requests=600, failures=6)

    page = signed_in(world.viewer).get("/vision").content.decode()

    assert "1.0%" in page
    assert "5.0 ms" in page
    assert "$24" in page


def test_nothing_measured_is_not_known_and_not_zero(world: World, signed_in: SignIn) -> None:
    world.serving()

    home = page(signed_in(world.viewer).get("/vision"))

    assert "0.0 /s" not in home.text
    assert "not known" in home.text


def test_a_forecast_over_the_budget_is_shown(world: World, signed_in: SignIn) -> None:
    world.serving()
    measure(world, requests=1, failures=0)
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal("0.01"))

    page = signed_in(world.viewer).get("/vision").content.decode()

    assert "exceed its budget" in page


def test_home_and_costs_show_one_forecast(world: World, signed_in: SignIn) -> None:
    world.serving()
    measure(world, requests=1, failures=0)
    world.clock.move(3600)
    client = signed_in(world.viewer)

    home = re.search(r"Forecast (\$[\d,.]+)", page(client.get("/vision")).text)
    costs = re.match(r"(\$[\d,.]+)", page(client.get("/costs")).term("Month forecast"))

    assert home is not None
    assert costs is not None
    assert home.group(1) == costs.group(1) != "$0"


def test_a_new_team_is_taught_the_first_upload(db: None, signed_in: SignIn) -> None:
    membership = make_membership(team=make_team(slug="fresh", name="Fresh"))

    shown = page(signed_in(membership.user).get("/fresh"))

    assert "Fresh has no models yet" in shown.text
    assert "/fresh/upload" in shown.links.values()


def test_a_person_without_a_team_reads_what_to_do(db: None, signed_in: SignIn) -> None:
    page = signed_in(make_user()).get("/").content.decode()

    assert "not in a team yet" in page


def test_the_home_page_polls(world: World, signed_in: SignIn) -> None:
    part = page(signed_in(world.viewer).get("/vision", **HTMX, HTTP_HX_TARGET="home"))

    assert part.part("home").text
    assert not part.is_whole_page


def test_home_needs_as_many_queries_for_many_deployments_as_for_few(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    serving = world.serving()
    measure(world, requests=300, failures=3)
    add_deployments(world, 1)
    Deployment.objects.filter(name="other00").update(state=DeploymentState.DEGRADED)
    client = signed_in(world.lead)
    client.get("/vision")
    with django_assert_num_queries(QUERIES):
        client.get("/vision")
    add_deployments(world, 30, start=1)
    Deployment.objects.filter(name="other07").update(state=DeploymentState.DEGRADED)

    with django_assert_num_queries(QUERIES):
        shown = page(client.get("/vision"))

    # The degraded one first, then by name, and no more than fit.
    names = [link for link in shown.links if link.startswith(("other", "detector"))]
    assert names[:2] == ["other00", "other07"]
    assert serving.name in names
    assert "other20" not in names


def test_open_alerts_of_the_team_are_listed(world: World, signed_in: SignIn) -> None:
    add_alert(world, 1, path="/vision/deployments/detector/targets")
    add_alert(world, 2, ended_at=world.clock.at)
    add_alert(world, 3, silenced_until=world.clock.at + timedelta(hours=1))
    add_alert(world, 4, team=make_team(slug="audio"))

    shown = page(signed_in(world.viewer).get("/vision"))

    assert shown.links["Queue of detector1"] == "/vision/deployments/detector/targets"
    assert "Requests wait in detector1." in shown.text
    assert "Queue Queue of detector1" in shown.text
    for number in (2, 3, 4):
        assert f"detector{number}" not in shown.text


def test_home_lists_the_eight_newest_alerts(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    client = signed_in(world.viewer)
    add_alert(world, 0)
    client.get("/vision")
    with CaptureQueriesContext(connection) as few:
        client.get("/vision")
    for number in range(1, 12):
        add_alert(world, number, opened_at=world.clock.at + timedelta(minutes=number))

    with django_assert_num_queries(len(few)):
        shown = page(client.get("/vision"))

    named = [link for link in shown.links if link.startswith("Queue of")]
    assert named == [f"Queue of detector{number}" for number in range(11, 3, -1)]


def test_a_budget_is_named_once(world: World, signed_in: SignIn) -> None:
    """The forecast on home says what its alert says."""
    add_alert(world, 1, kind="budget", subject="Budget of vision")
    client = signed_in(world.lead)
    assert "Budget of vision" in page(client.get("/vision")).text
    world.serving()
    measure(world, requests=1, failures=0)
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal("0.01"))

    shown = page(client.get("/vision")).text

    assert "vision is forecast to exceed its budget" in shown
    assert "Budget of vision" not in shown


def add_alert(world: World, number: int, **more: Any) -> Alert:
    return Alert.objects.create(
        **{
            "team": world.team,
            "kind": "queue_depth",
            "key": f"deployment {number}",
            "subject": f"Queue of detector{number}",
            "message": f"Requests wait in detector{number}.",
            "path": f"/vision/deployments/detector{number}",
            "opened_at": world.clock.at,
            **more,
        }
    )


def add_deployments(world: World, count: int, start: int = 0) -> None:
    Deployment.objects.bulk_create(
        Deployment(
            team=world.team,
            cluster_id=world.cluster_id,
            name=f"other{number:02}",
            namespace="vision",
            created_by=world.member,
            created_at=world.clock.at,
            state=DeploymentState.PENDING,
        )
        for number in range(start, start + count)
    )
