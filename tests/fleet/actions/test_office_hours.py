"""Office hours of node pools: from the request over the edges of the clock to their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import decisions, hours_requests, requests
from fleet.clusters.domain.node_groups import GroupSize
from fleet.kube.domain.errors import Refused, Throttled, Unreachable
from fleet.models import Cluster, FleetAction, Node, PoolOfficeHours
from fleet.office_hours.domain.hours import OfficeHours, Window
from fleet.office_hours.domain.sizes import PoolKind
from fleet.office_hours.services import keep
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, Unavailable
from portal.notifications.models import Notice
from tests.accounts import make_user
from tests.fleet.actions.conftest import BEFORE, FakeGroups, Hands
from tests.fleet.actions.test_node_pools import live_pool
from tests.fleet.fakes import FakeKube
from tests.page import page

pytestmark = pytest.mark.django_db
HOURS = OfficeHours((Window(450, 1320),) * 5 + (None,) * 2, timezone="Europe/Berlin")
NIGHT = {"min_size": 0, "max_size": 1, "desired_size": 0}
OWN = BEFORE.to_json()


class Clockwork(Hands):
    """The worker's passes, of the office hours too."""

    def at_time(self, text: str) -> None:
        self.at = datetime.fromisoformat(text)

    def keep(self, aws: FakeGroups | None = None, times: int = 6) -> None:
        for _ in range(times):
            self.at += timedelta(seconds=15)
            keep.sweep()
            if aws is not None and aws.group.status == "UPDATING":
                aws.finish()


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Clockwork:
    return Clockwork(monkeypatch)


def request_hours(
    lead: User, cluster: Cluster, kind: PoolKind = PoolKind.NODE_GROUP, **more: Any
) -> FleetAction:
    call: dict[str, Any] = {
        "actor": lead,
        "cluster_id": cluster.pk,
        "kind": kind,
        "name": "gpu",
        "hours": HOURS,
    }
    return hours_requests.request_office_hours(**call | more)


def set_hours(lead: User, admin: User, cluster: Cluster, hands: Clockwork, **more: Any) -> None:
    """Approved and carried out on a Friday at noon, in office hours."""
    hands.approve(request_hours(lead, cluster, **more), admin)
    hands.sweep(3)


def size_of(aws: FakeGroups) -> dict[str, int]:
    return aws.group.size.to_json()


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


def test_office_hours_of_a_pool_that_was_deleted_can_be_ended(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Clockwork
) -> None:
    kube.put(live_pool())
    set_hours(lead, admin, node.cluster, hands, kind=PoolKind.NODE_POOL)
    hands.keep()
    kube.remove("NodePool", "", "gpu")
    hands.at += timedelta(minutes=6)
    hands.keep(times=1)
    problem = PoolOfficeHours.objects.get().problem
    action = hours_requests.request_office_hours_end(
        actor=lead, cluster_id=node.cluster_id, kind=PoolKind.NODE_POOL, name="gpu"
    )
    hands.approve(action, admin)
    hands.sweep(2)
    hands.keep(times=2)
    hands.sweep(2)
    action.refresh_from_db()

    assert problem == "There is no node pool gpu."
    assert Evidence.from_json(action.evidence).warnings == (
        "There is no node pool gpu. Only its office hours are removed.",
    )
    assert (action.state, PoolOfficeHours.objects.count()) == ("done", 0)


def test_a_node_pool_gets_its_limit_and_says_what_ends_its_nodes(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Clockwork
) -> None:
    kube.put(live_pool())
    Node.objects.filter(pk=node.pk).update(labels={"karpenter.sh/nodepool": "gpu"})
    set_hours(lead, admin, node.cluster, hands, kind=PoolKind.NODE_POOL)
    hands.keep()
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep()
    night = dict(kube.objects["NodePool", "", "gpu"]["spec"])
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep()
    monday = kube.objects["NodePool", "", "gpu"]["spec"]

    evidence = Evidence.from_json(FleetAction.objects.get().evidence)
    assert night["limits"] == {"nvidia.com/gpu": "0", "cpu": "64"}
    assert monday["limits"] == {"nvidia.com/gpu": "4", "cpu": "64"}
    assert [(row.deployment, row.pods, row.gpus) for row in evidence.deployments] == [
        ("detector", 2, 2)
    ]
    assert evidence.warnings == (
        "argocd-controller also writes this node pool, and may restore its own values.",
        "A lower GPU limit starts no new node and ends no running one. Karpenter ends a node 5m after it has "
        "no pod but those of DaemonSets, or when its pods fit on other nodes. So deployments that keep "
        "replicas at night keep their nodes: give them office hours or scale to zero too.",
    )
    # It chooses types by other means than a list.
    assert evidence.usd_per_hour_after is None


def test_a_static_node_pool_ends_nodes(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Clockwork
) -> None:
    kube.put(live_pool(replicas=3, limits={"nodes": "5"}))
    set_hours(lead, admin, node.cluster, hands, kind=PoolKind.NODE_POOL)
    hands.keep()
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep()
    night = dict(kube.objects["NodePool", "", "gpu"]["spec"])
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep()

    assert (night["replicas"], night["limits"]) == (0, {"nodes": "5"})
    assert kube.objects["NodePool", "", "gpu"]["spec"]["replicas"] == 3


def test_a_cluster_that_is_away_is_told_once_and_tried_again(
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
    with pytest.raises(Conflict, match="has these office hours already"):
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
    assert "Fill both, or none." in page(half).text
    assert "nobody trains at night" in page(nowhere).text
    assert "Set office hours of gpu" in page(sent).text
    assert "The mean of a week, 730 hours a month" in page(sent).text
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
