"""Requests for office hours: what is refused, void or repeated, on the page and in REST."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import hours_requests
from fleet.kube.domain.errors import Unreachable
from fleet.models import Cluster, FleetAction, PoolOfficeHours
from fleet.office_hours.domain.sizes import PoolKind
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, Unavailable
from tests.accounts import make_user
from tests.fleet.actions.conftest import BEFORE, FakeGroups
from tests.fleet.actions.office_hours import (
    HOURS,
    Clockwork,
    hands,
    request_hours,
    set_hours,
)
from tests.fleet.fakes import FakeKube
from tests.page import page

__all__ = ["hands"]
pytestmark = pytest.mark.django_db


def test_the_request_shows_a_month_by_its_hours(
    eks_cluster: Cluster, lead: User, aws: FakeGroups, hands: Clockwork
) -> None:
    """Two nodes of the dearer type at $1.006, 72.5 of 168 hours."""
    evidence = Evidence.from_json(request_hours(lead, eks_cluster).evidence)

    assert [(row.label, row.before, row.after) for row in evidence.changes] == [
        (
            "Office hours",
            "always open",
            "Monday to Friday 07:30 to 22:00 (Europe/Berlin)",
        ),
        ("Hours a week", "168", "72.5"),
        ("In office hours", "2 nodes (1 to 4)", "2 nodes (1 to 4)"),
        ("Outside of them", "", "0 nodes (0 to 1)"),
    ]
    assert evidence.usd_per_hour_before == Decimal("2.012000")
    assert evidence.usd_per_hour_after == Decimal("0.868274")
    assert evidence.usd_per_month_change == Decimal("-834.919980")


def test_refusals_change_nothing(
    eks_cluster: Cluster, lead: User, aws: FakeGroups, kube: FakeKube, hands: Clockwork
) -> None:
    def refused(error: type[DomainError], **more: Any) -> DomainError:
        with pytest.raises(error) as caught:
            request_hours(lead, eks_cluster, **more)
        assert (FleetAction.objects.count(), PoolOfficeHours.objects.count(), aws.tokens) == (
            0,
            0,
            [],
        )
        return caught.value

    refused(Forbidden, actor=make_user())
    refused(Invalid, hours=replace(HOURS, timezone="Berlin"))
    refused(NotFound, cluster_id=0)
    refused(Conflict, name="other")
    refused(Conflict, kind=PoolKind.NODE_POOL, name="none")
    kube.allows = lambda attributes: attributes["verb"] != "patch"
    refusal = refused(Conflict, kind=PoolKind.NODE_POOL)
    aws.group = replace(aws.group, status="UPDATING")
    refused(Conflict)
    aws.broken = Unreachable("eks:DescribeNodegroup gpu failed")
    refused(Unavailable)

    assert "cluster_rbac --fleet-actions" in refusal.message


def test_the_same_hours_again_and_the_end_of_none_are_refused(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    with pytest.raises(Conflict, match="has no office hours"):
        hours_requests.request_office_hours_end(
            actor=lead, cluster_id=eks_cluster.pk, kind=PoolKind.NODE_GROUP, name="gpu"
        )
    set_hours(lead, admin, eks_cluster, hands)
    with pytest.raises(Conflict, match="already has these office hours"):
        request_hours(lead, eks_cluster)


def test_an_approval_is_void_when_the_pool_changed(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    action = request_hours(lead, eks_cluster)
    aws.group = replace(aws.group, size=replace(BEFORE, desired_size=4))

    with pytest.raises(Conflict, match="changed after you opened it"):
        hands.approve(action, admin)
    assert PoolOfficeHours.objects.count() == 0


def test_from_the_list_to_the_request_on_the_page(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork, client: Client
) -> None:
    client.force_login(lead)
    groups = page(client.get(f"/fleet/clusters/{eks_cluster.pk}/node-groups"))
    here = groups.link("always open")
    form = {
        "timezone": "Europe/Berlin",
        "closed_size": "0",
        "monday_start": "07:30",
        "monday_end": "22:00",
        "comment": "nobody trains at night",
    }
    broken = client.post(here, form | {"monday_end": "25:00"})
    half = client.post(here, form | {"monday_end": ""})
    nowhere = client.post(here, form | {"timezone": "Berlin"})
    sent = client.post(here, form, follow=True)
    action = FleetAction.objects.get()
    hands.approve(action, admin)
    hands.sweep(3)
    hands.keep(aws)
    shown = page(client.get(here))
    listed = page(client.get(f"/fleet/clusters/{eks_cluster.pk}/node-groups"))
    ended = client.post(here, {"end": "1", "comment": "we do"}, follow=True)
    unknown = client.get(f"/fleet/clusters/{eks_cluster.pk}/office-hours/nodes/gpu")

    assert [answer.status_code for answer in (broken, half, nowhere)] == [422, 422, 422]
    assert "Write it as hh:mm" in page(broken).text
    assert "Fill in both, or neither." in page(half).text
    assert "nobody trains at night" in page(nowhere).text
    assert "Set office hours of gpu" in page(sent).text
    assert "Average over a week, at 730 hours a month" in page(sent).text
    assert "Monday 07:30 to 22:00 (Europe/Berlin)" in shown.text
    assert "14.5 of 168" in shown.text
    assert "2 nodes (1 to 4)" in shown.text
    assert "Monday 07:30 to 22:00 (Europe/Berlin)" in listed.text
    assert "End office hours of gpu" in page(ended).text
    assert unknown.status_code == 404


def test_the_api_sets_lists_and_ends(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork, client: Client
) -> None:
    client.force_login(lead)
    here = f"/api/v1/clusters/{eks_cluster.pk}/office-hours"

    def post(address: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        answer = client.post(f"{here}{address}", body, content_type="application/json")
        return answer.status_code, answer.json()

    body = {"timezone": "UTC", "closed_size": 1, "days": {"monday": ["22:00", "06:00"]}}
    unknown, _ = post("/nodes/gpu", body)
    broken, problem = post("/node-group/gpu", body | {"days": {"monday": ["22", "06:00"]}})
    empty, _ = post("/node-group/gpu", body | {"days": {}})
    status, made = post("/node-group/gpu", body)
    hands.approve(FleetAction.objects.get(), admin)
    hands.sweep(3)
    hands.keep(aws)
    [kept] = client.get(here).json()
    ended, end = post("/node-group/gpu/end", {})

    assert (unknown, broken, empty, status, ended) == (404, 422, 422, 201, 201)
    assert "no hours such as" in str(problem)
    assert (made["kind"], made["parameters"]["closed_size"]) == ("set_office_hours", 1)
    assert (kept["kind"], kept["name"], kept["days"]["monday"]) == (
        "node group",
        "gpu",
        ["22:00", "06:00"],
    )
    assert (kept["is_open"], kept["current_size"], kept["open_size"]) == (
        False,
        "1 node (1 to 1)",
        "2 nodes (1 to 4)",
    )
    assert end["kind"] == "end_office_hours"
