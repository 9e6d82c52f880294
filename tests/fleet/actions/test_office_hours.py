"""Office hours of node groups: from the approval over the edges of the clock to their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import decisions, hours_requests, requests
from fleet.clusters.domain.node_groups import GroupSize
from fleet.kube.domain.errors import Refused, Throttled
from fleet.models import Cluster, FleetAction, PoolOfficeHours
from fleet.office_hours.domain.sizes import PoolKind
from fleet.office_hours.services import keep
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.notifications.models import Notice
from tests.fleet.actions.conftest import BEFORE, FakeGroups
from tests.fleet.actions.office_hours import (
    NIGHT,
    OWN,
    Clockwork,
    hands,
    set_hours,
    size_of,
)
from tests.page import page

__all__ = ["hands"]
pytestmark = pytest.mark.django_db


def test_a_week_of_a_node_group(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    friday = size_of(aws)
    hands.at_time("2026-11-20T20:59:00+00:00")
    hands.keep(aws, times=3)
    evening = size_of(aws)
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep(aws)
    night = size_of(aws)
    hands.at_time("2026-11-22T12:00:00+00:00")
    hands.keep(aws)
    sunday = size_of(aws)
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep(aws)
    monday = size_of(aws)

    action = FleetAction.objects.get()
    assert (action.state, action.state_reason) == (
        "done",
        "Its office hours are set. It closes at 2026-11-20 21:00 UTC.",
    )
    assert [friday, evening, night, sunday, monday] == [OWN, OWN, NIGHT, NIGHT, OWN]
    assert len(aws.tokens) == 2
    assert list(
        AuditEvent.objects.filter(action__startswith="office_hours")
        .order_by("pk")
        .values_list("action", "after__size")
    ) == [
        ("office_hours.set", None),
        ("office_hours.closed", "0 nodes (0 to 1)"),
        ("office_hours.opened", "2 nodes (1 to 4)"),
    ]


def test_a_worker_that_dies_after_the_call_repeats_it_with_the_same_token(
    eks_cluster: Cluster,
    lead: User,
    admin: User,
    aws: FakeGroups,
    hands: Clockwork,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep(times=1)
    with monkeypatch.context() as patched:
        patched.setattr(keep, "_record", _die)
        with pytest.raises(KeyboardInterrupt):
            hands.keep(times=1)
    # AWS did not show the update yet.
    aws.group = replace(aws.group, status="ACTIVE")
    hands.at += timedelta(minutes=3)
    hands.keep(aws)

    row = PoolOfficeHours.objects.get()
    assert (len(aws.tokens), len(set(aws.tokens))) == (2, 1)
    assert (size_of(aws), row.is_open, row.open_size) == (NIGHT, False, OWN)


def test_a_worker_that_dies_before_it_records_repeats_nothing_that_aws_has(
    eks_cluster: Cluster,
    lead: User,
    admin: User,
    aws: FakeGroups,
    hands: Clockwork,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep(times=1)
    with monkeypatch.context() as patched:
        patched.setattr(keep, "_record", _die)
        with pytest.raises(KeyboardInterrupt):
            hands.keep(times=1)
    aws.finish()
    hands.at += timedelta(minutes=3)
    hands.keep(aws)

    row = PoolOfficeHours.objects.get()
    assert len(aws.tokens) == 1
    assert (row.is_open, row.open_size, row.move) == (False, OWN, None)


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_change_by_hand_at_night_is_shown_and_left_until_the_morning(
    eks_cluster: Cluster,
    lead: User,
    admin: User,
    aws: FakeGroups,
    hands: Clockwork,
    client: Client,
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep(aws)
    aws.group = replace(aws.group, size=replace(BEFORE, desired_size=3))
    hands.at_time("2026-11-21T02:00:00+00:00")
    hands.keep(aws)
    by_hand = size_of(aws)
    client.force_login(lead)
    shown = page(client.get(f"/fleet/clusters/{eks_cluster.pk}/office-hours/node-group/gpu"))
    [in_api] = client.get(f"/api/v1/clusters/{eks_cluster.pk}/office-hours").json()
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep(aws)

    assert by_hand["desired_size"] == 3
    assert "changed the pool from 0 nodes (0 to 1) to 3 nodes (1 to 4)" in shown.text
    assert (in_api["is_open"], in_api["changed_from"], in_api["hours_per_week"]) == (
        False,
        "0 nodes (0 to 1)",
        "72.50",
    )
    assert size_of(aws) == OWN
    assert PoolOfficeHours.objects.get().changed_at is None


def test_what_was_scaled_in_office_hours_comes_back(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    aws.group = replace(aws.group, size=replace(BEFORE, desired_size=4))
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep(aws)
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep(aws)

    assert size_of(aws) == {"min_size": 1, "max_size": 4, "desired_size": 4}


def test_a_request_for_another_size_says_how_long_it_holds(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    def warned() -> tuple[str, ...]:
        size = GroupSize(0, 6, 3)
        action = requests.request_group_scale(
            actor=lead, cluster_id=eks_cluster.pk, name="gpu", size=size
        )
        decisions.withdraw(actor=lead, action_id=action.pk)
        return Evidence.from_json(action.evidence).warnings

    before = warned()
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    day = warned()
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep(aws)
    night = warned()

    assert not any("office hours" in text for text in before)
    assert (
        "It has office hours and closes at 2026-11-20 21:00 UTC. It gets this size back when it opens."
        in day
    )
    assert (
        "It has office hours and opens at 2026-11-23 06:30 UTC: then it gets back 2 nodes (1 to 4). "
        "Until then this size stays." in night
    )


def test_their_end_at_night_gives_the_size_back(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    hands.at_time("2026-11-20T22:00:00+00:00")
    hands.keep(aws)
    action = hours_requests.request_office_hours_end(
        actor=lead, cluster_id=eks_cluster.pk, kind=PoolKind.NODE_GROUP, name="gpu"
    )
    evidence = Evidence.from_json(action.evidence)
    hands.approve(action, admin)
    hands.sweep(2)
    hands.keep(aws, times=8)
    hands.sweep(2)
    action.refresh_from_db()

    assert evidence.warnings == ("It is closed now. It gets 2 nodes (1 to 4) back at once.",)
    assert (evidence.usd_per_hour_before, evidence.usd_per_hour_after) == (
        Decimal("0.868274"),
        Decimal("2.012000"),
    )
    assert (action.state, action.state_reason) == ("done", "Its office hours have ended.")
    assert (size_of(aws), PoolOfficeHours.objects.count()) == (OWN, 0)


def test_an_unreachable_cluster_notifies_once_and_is_retried(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Clockwork
) -> None:
    set_hours(lead, admin, eks_cluster, hands)
    hands.keep(aws)
    hands.at_time("2026-11-20T21:00:00+00:00")
    aws.broken = Refused("eks:DescribeNodegroup gpu failed: AccessDenied")
    before = Notice.objects.count()
    hands.keep(aws)
    early = Notice.objects.count() - before
    for _ in range(6):
        hands.at += timedelta(minutes=6)
        hands.keep(aws)
    row = PoolOfficeHours.objects.get()
    told = Notice.objects.count() - before
    aws.broken = Throttled("slow down", retry_after_seconds=400)
    hands.at += timedelta(minutes=6)
    hands.keep(aws, times=1)
    waits = PoolOfficeHours.objects.get().next_check_at
    aws.broken = None
    hands.at += timedelta(minutes=8)
    hands.keep(aws)

    assert row.problem == "eks:DescribeNodegroup gpu failed: AccessDenied"
    assert (early, told) == (0, 1)
    assert waits is not None
    assert waits >= hands.at - timedelta(minutes=8) + timedelta(seconds=300)
    assert (size_of(aws), PoolOfficeHours.objects.get().problem) == (NIGHT, "")
