from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.models import (
    Cluster,
    GpuLease,
    InstancePrice,
    LedgerRow,
    Node,
    Pod,
    SealedHour,
    UnpricedHour,
    Workload,
    WorkloadMinute,
)
from portal.accounts.models import Membership, Role, Team, User

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
HOUR = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _still_clock() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def vision() -> Team:
    return Team.objects.create(
        slug="vision", name="Vision", created_at=NOW, monthly_budget_amount=Decimal(1000)
    )


@pytest.fixture
def nlp() -> Team:
    return Team.objects.create(slug="nlp", name="Language", created_at=NOW)


@pytest.fixture
def member(vision: Team) -> Client:
    user = User.objects.create_user("member")
    Membership.objects.create(user=user, team=vision, role=Role.MEMBER)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("ada", is_platform_admin=True))
    return client


@pytest.fixture
def node() -> Node:
    cluster = Cluster.objects.create(
        name="local",
        kind="local",
        gateway_url="http://127.0.0.1:1",
        created_at=NOW,
        last_seen_at=NOW,
    )
    InstancePrice.objects.create(
        instance_type="g5.12xlarge",
        region="us-east-1",
        usd_per_hour_amount=Decimal("5.672"),
        gpu_name="A10G",
        gpu_count=4,
        gpu_memory_mib=23028,
        vcpu=48,
        memory_gib=192,
        source="list",
        valid_from=NOW.date(),
    )
    return Node.objects.create(
        cluster=cluster,
        name="local-1",
        uid="n1",
        instance_type="g5.12xlarge",
        region="us-east-1",
        gpu_product="A10G",
        gpu_count=4,
        is_ready=True,
        is_simulated=True,
        first_seen_at=NOW - timedelta(minutes=10),
        last_seen_at=NOW,
    )


def hold(node: Node, team: Team, name: str, share_ppm: int, busy: float | None) -> Workload:
    workload = Workload.objects.create(
        cluster=node.cluster,
        team=team,
        namespace=team.slug,
        name=f"{name}-r1",
        labels={"deployment": name, "model": name, "revision": "1"},
        created_at=NOW,
    )
    GpuLease.objects.create(
        cluster=node.cluster,
        node=node,
        workload=workload,
        pod_uid=name,
        pod_name=f"{name}-pod",
        namespace=team.slug,
        team_slug=team.slug,
        share_ppm=share_ppm,
        started_at=NOW - timedelta(minutes=5),
        changed_at=NOW,
    )
    if busy is not None:
        WorkloadMinute.objects.create(
            workload=workload,
            start=NOW - timedelta(minutes=1),
            observed_ms=60_000,
            gpu_busy_ms=int(60_000 * busy),
            gpu_busy_source="triton",
        )
    return workload


def ledger(kind: str, amount: str, **names: Any) -> LedgerRow:
    values = {
        "hour": HOUR,
        "cluster_name": "local",
        "node_uid": "n1",
        "node_name": "local-1",
        "instance_type": "g5.12xlarge",
        "gpu_milliseconds": 3_600_000,
        "usd_per_hour_amount": Decimal("5.672"),
        "price_source": "list",
        "sealed_at": NOW,
    }
    return LedgerRow.objects.create(kind=kind, cost_amount=Decimal(amount), **(values | names))


@pytest.fixture
def ledger_rows(node: Node) -> None:
    SealedHour.objects.create(cluster=node.cluster, hour=HOUR, sealed_at=NOW)
    labels = {"deployment": "detector", "model": "detector", "revision": "1"}
    ledger(
        "allocated",
        "1.418",
        team_slug="vision",
        namespace="vision",
        workload_name="detector-r1",
        workload_labels=labels,
    )
    ledger("allocated", "2.836", team_slug="nlp", namespace="nlp", workload_name="asr-r1")
    ledger("idle", "1.418")


def test_each_gpu_is_a_tile_that_names_its_holder(admin: Client, node: Node, vision: Team) -> None:
    hold(node, vision, "detector", 1_000_000, 0.7)
    hold(node, vision, "rank", 250_000, None)

    html = admin.get("/fleet").content.decode()

    assert re.search(
        r'<a class="part w-100 use-3"\s+href="/deployments/vision/detector"\s+'
        r'title="vision/detector · detector-pod · 1 GPU · 70% [^"]+">detector</a>',
        html,
    )
    assert re.search(r'class="part w-25 use-unknown"[^>]*utilisation not known">rank<', html)
    assert html.count('class="gpu sim"') == 4 + 1
    assert "1.25" in html
    assert "2.75 free" in html


def test_things_of_other_teams_are_not_named(member: Client, node: Node, nlp: Team) -> None:
    hold(node, nlp, "secret-plan", 1_000_000, 0.5)

    html = member.get("/fleet").content.decode()

    assert "secret-plan" not in html
    assert "other team" in html


def test_pending_pods_say_why_they_wait(admin: Client, node: Node, vision: Team) -> None:
    workload = hold(node, vision, "detector", 1_000_000, None)
    Pod.objects.create(
        cluster=node.cluster,
        workload=workload,
        namespace="vision",
        name="detector-r1-x",
        uid="p",
        phase="Pending",
        reason="Unschedulable",
        message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        gpu_resource="nvidia.com/gpu",
        gpu_units=2,
        created_at=NOW - timedelta(minutes=4),
    )

    html = admin.get("/fleet").content.decode()

    assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in html
    assert "4 min ago" in html


def test_fleet_without_nodes_teaches_the_next_step(admin: Client) -> None:
    assert "No GPU nodes yet" in admin.get("/fleet").content.decode()


def test_polling_gets_the_board_only(admin: Client, node: Node) -> None:
    html = admin.get("/fleet", headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in html
    assert html.lstrip().startswith('<div id="fleet-board"')


def test_fleet_needs_as_many_queries_for_many_nodes_as_for_one(
    admin: Client, node: Node, vision: Team, django_assert_max_num_queries: Any
) -> None:
    hold(node, vision, "detector", 1_000_000, 0.4)
    for number in range(30):
        node.pk, node.uid, node.name = None, f"n{number}x", f"local-{number + 2}"
        node.save()

    with django_assert_max_num_queries(14):
        html = admin.get("/fleet").content.decode()

    assert html.count('class="node"') == 24
    assert "View all 31 nodes" in html


def test_costs_of_a_team_leave_out_others_and_idle(
    member: Client, nlp: Team, ledger_rows: None
) -> None:
    html = member.get("/costs?group=deployment").content.decode()

    assert "vision/detector" in html
    assert "asr" not in html
    assert ">nlp<" not in html
    assert "Visible to platform admins" in html


def test_admin_sees_every_team_and_idle_and_the_sum(
    admin: Client, vision: Team, nlp: Team, ledger_rows: None
) -> None:
    Node.objects.all().delete()
    rows = list(
        csv.DictReader(admin.get("/costs.csv?range=month").getvalue().decode().splitlines())
    )

    assert [(row["group"], row["total_usd"]) for row in rows] == [
        ("nlp", "2.836000"),
        ("vision", "1.418000"),
        ("idle", "1.418000"),
    ]
    assert sum(Decimal(row["total_usd"]) for row in rows) == Decimal("5.672")


def test_every_amount_leads_to_its_ledger_rows(
    admin: Client, vision: Team, nlp: Team, ledger_rows: None
) -> None:
    Node.objects.all().delete()
    html = admin.get("/costs?group=deployment").content.decode()
    link = re.search(r'href="(/costs/ledger\?[^"]*deployment=detector[^"]*)"', html)
    assert link is not None

    page = admin.get(link.group(1).replace("&amp;", "&")).content.decode()

    assert "$1.418000" in page
    assert "$2.836000" not in page
    assert page.count("detector-r1") == 1


def test_ledger_of_other_teams_stays_hidden(member: Client, nlp: Team, ledger_rows: None) -> None:
    html = member.get("/costs/ledger?holder=nlp").content.decode()

    assert "asr-r1" not in html
    assert "No ledger row" in html


def test_the_running_hour_is_marked_as_an_estimate(admin: Client, node: Node, vision: Team) -> None:
    hold(node, vision, "detector", 1_000_000, None)

    costs = admin.get("/costs").content.decode()
    rows = admin.get("/costs/ledger").content.decode()

    assert "estimated for unsealed hours" in costs
    assert '<span class="chip warn">estimated</span>' in rows


def test_the_forecast_of_the_whole_fleet_counts_idle_gpus_to_the_end_of_the_month(
    admin: Client, node: Node, vision: Team, ledger_rows: None
) -> None:
    page = admin.get("/costs").content.decode()
    found = re.search(r"Month forecast</dt>\s*<dd>\s*\$([\d,]+)", page)

    spent_and_estimated = Decimal("5.672") + Decimal("5.672") / 6
    left_hours = Decimal("227.5")
    assert found is not None
    assert Decimal(found.group(1).replace(",", "")) == round(
        spent_and_estimated + left_hours * Decimal("5.672")
    )


def test_the_forecast_is_not_known_when_a_price_is_not(
    admin: Client, node: Node, ledger_rows: None
) -> None:
    InstancePrice.objects.all().delete()

    page = admin.get("/costs").content.decode()

    assert re.search(r"Month forecast</dt>\s*<dd>\s*<span class=\"unknown\">", page)


def test_an_address_that_means_nothing_shows_this_month(admin: Client, ledger_rows: None) -> None:
    answer = admin.get("/costs?range=banana&group=moon&start=x&end=2026-13-40&of=nobody")

    assert answer.status_code == 200
    assert "1 Nov" in answer.content.decode()


def test_range_and_group_stay_in_the_address_when_the_other_changes(
    admin: Client, ledger_rows: None
) -> None:
    html = admin.get("/costs?range=7d&group=model").content.decode()

    assert 'href="/costs?range=7d&amp;group=revision"' in html
    assert 'href="/costs?range=30d&amp;group=model"' in html


def test_row_without_a_price_is_shown_as_unpriced(admin: Client, node: Node) -> None:
    SealedHour.objects.create(cluster=node.cluster, hour=HOUR, sealed_at=NOW)
    UnpricedHour.objects.create(node=node, hour=HOUR)
    ledger("idle", "0", usd_per_hour_amount=None, price_source="", capacity_type="spot")

    InstancePrice.objects.all().delete()
    page = admin.get("/costs/ledger").content.decode()
    costs = " ".join(admin.get("/costs").content.decode().split())
    answer = admin.get("/costs/ledger.csv?from=2026-11-21T00:00Z&to=2026-11-22T00:00Z")
    row = next(csv.DictReader(answer.getvalue().decode().splitlines()))

    assert '<span class="chip warn">unpriced</span>' in page
    assert "local · g5.12xlarge · spot" in page
    assert "$None" not in page
    assert "<b>1 node without a price.</b>" in costs
    assert "idle: ledger rows for unknown cost" in costs
    assert ">not known</a>" in costs
    assert "$0.00" not in costs.partition("<tbody>")[2]
    assert "local-1 (g5.12xlarge, on-demand, us-east-1;" in costs
    told = ("capacity_type", "usd_per_hour", "price_source", "is_priced")
    assert [row[name] for name in told] == ["spot", "", "", "False"]


def test_ledger_csv_has_every_row_of_the_period(
    admin: Client, vision: Team, ledger_rows: None
) -> None:
    Node.objects.all().delete()
    answer = admin.get("/costs/ledger.csv?from=2026-11-21T00:00Z&to=2026-11-22T00:00Z")
    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert [row["kind"] for row in rows] == ["allocated", "allocated", "idle"]
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal("5.672")
