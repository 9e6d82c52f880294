from __future__ import annotations

import csv
import io
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from rest_framework.test import APIClient

from fleet.costs.services import ledger
from fleet.kube.domain.errors import Unreachable
from fleet.models import Cluster, InstancePrice, Node
from fleet.observation.services import record, workloads
from fleet.observation.services.record import FullListing
from portal.accounts.models import Role, Team, User
from tests.accounts import make_membership, make_team, make_user
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod

HOUR = timedelta(hours=1)
NOW = START + HOUR + timedelta(minutes=30)
SPAN = {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T12:00:00Z"}
PEOPLE = ("viewer", "member", "lead", "stranger", "admin")
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet", "catalogue")]


@pytest.fixture
def people(vision: Team) -> dict[str, User]:
    users = {name: make_user(username=name) for name in PEOPLE if name != "admin"}
    users["admin"] = make_user(username="admin", is_platform_admin=True)
    for role in (Role.VIEWER, Role.MEMBER, Role.LEAD):
        make_membership(user=users[role], team=vision, role=role)
    make_membership(user=users["stranger"], team=Team.objects.get(slug="nlp"))
    return users


@pytest.fixture
def fleet(cluster: Cluster, detector: int, catalogue: None) -> None:
    """vision and nlp use a GPU each of a node with four, since START; one hour is sealed."""
    workloads.register(
        cluster_id=cluster.pk,
        team=make_team(slug="nlp"),
        namespace="nlp",
        name="ranker-r1",
        labels={"deployment": "ranker", "revision": "1", "model": "nlp/ranker"},
        triton_models=["ranker"],
    )
    nodes = [node(instance_type="g5.12xlarge", gpus=4)]
    pods = [pod(), pod("ranker-r1-x", namespace="nlp", workload="ranker-r1")]
    for at in (START, NOW):
        record.replace_all(
            cluster_id=cluster.pk, nodes=FullListing(nodes, 9), pods=FullListing(pods, 9), at=at
        )
    with time_machine.travel(NOW, tick=False):
        ledger.seal_due()


def client_of(user: User | None) -> APIClient:
    client = APIClient()
    if user is not None:
        client.force_authenticate(user)
    return client


def get(user: User | None, path: str, **query: str) -> Any:
    with time_machine.travel(NOW, tick=False):
        return client_of(user).get(f"/api/v1/{path}", query)


@pytest.mark.parametrize(
    "path",
    ["clusters", "nodes", "pods", "prices", "usage", "costs", "costs/series", "costs.csv"],
)
def test_nobody_gets_anything_without_signing_in(path: str) -> None:
    assert get(None, path).status_code == 401


@pytest.mark.parametrize("who", PEOPLE)
def test_costs_show_each_person_what_they_may_see(people: dict[str, User], who: str) -> None:
    body = get(people[who], "costs", **SPAN).json()

    shown = {row["key"]["name"]: Decimal(row["amount"]) for row in body["rows"]}
    each = Decimal("5.672") * Decimal("1.5") / 4
    expected = {
        "admin": {"vision": each, "nlp": each},
        "stranger": {"nlp": each},
    }.get(who, {"vision": each})
    assert shown == expected
    assert (body["idle"] is not None) == (who == "admin")
    if who == "admin":
        assert Decimal(body["total_amount"]) == Decimal("5.672") * Decimal("1.5")


def test_sealed_and_estimated_are_distinguished(people: dict[str, User]) -> None:
    row = get(people["lead"], "costs", **SPAN).json()["rows"][0]

    assert (row["allocated_amount"], row["estimated_amount"]) == ("1.418000", "0.709000")
    assert row["gpu_hours"] == "1.500000"


def test_other_teams_cost_does_not_exist_for_a_member(people: dict[str, User]) -> None:
    answer = get(people["member"], "costs", team="nlp", **SPAN)

    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


@pytest.mark.parametrize("who", PEOPLE)
def test_holders_of_other_teams_are_shown_without_their_names(
    people: dict[str, User], who: str
) -> None:
    body = get(people[who], "nodes").json()["results"]

    holders = [holder for gpu in body[0]["gpus"] for holder in gpu["holders"]]
    names = sorted(holder["name"] for holder in holders)
    assert names == {
        "admin": ["detector", "ranker"],
        "stranger": ["other team", "ranker"],
    }.get(who, ["detector", "other team"])
    if who == "stranger":
        assert "detector" not in str(body)
        assert "vision" not in str(body)


@pytest.mark.parametrize("who", PEOPLE)
def test_pods_are_those_of_ones_teams(people: dict[str, User], who: str) -> None:
    body = get(people[who], "pods").json()

    names = sorted(row["name"] for row in body["results"])
    assert names == {
        "admin": ["detector-r1-abc", "ranker-r1-x"],
        "stranger": ["ranker-r1-x"],
    }.get(who, ["detector-r1-abc"])


def test_ledger_csv_is_focus_and_sums_to_the_nodes_cost(people: dict[str, User]) -> None:
    answer = get(people["admin"], "costs/ledger.csv", **SPAN)
    text = b"".join(answer.streaming_content).decode()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("5.672") * Decimal("1.5")
    assert {row["x_IsSealed"] for row in rows} == {"true", "false"}
    assert rows[0]["ChargePeriodStart"] == "2026-11-20T10:00:00Z"


def test_costs_and_csv_name_what_has_no_price(people: dict[str, User]) -> None:
    InstancePrice.objects.all().delete()

    body = get(people["lead"], "costs", **SPAN).json()
    answer = get(people["admin"], "costs/ledger.csv", **SPAN)
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))

    # The first hour was sealed with its price; the second is not sealed.
    assert body["unpriced"] == [
        {
            "cluster_name": "local",
            "node_name": "node-1",
            "instance_type": "g5.12xlarge",
            "capacity_type": "on-demand",
            "region": "us-east-1",
            "hours": 1,
        }
    ]
    sealed = [(row["x_IsSealed"], row["x_IsPriced"], row["ListUnitPrice"]) for row in rows]
    assert set(sealed) == {("true", "true", "5.672000"), ("false", "false", "")}
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("5.672")


def test_table_csv_says_the_same_as_json(people: dict[str, User]) -> None:
    answer = get(people["lead"], "costs.csv", group_by="model", **SPAN)
    text = b"".join(answer.streaming_content).decode()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["group"], row["cost_usd"]) for row in rows] == [("vision/detector", "2.127000")]


def test_series_by_hour_sums_to_the_costs(people: dict[str, User]) -> None:
    points = get(people["admin"], "costs/series", step="hour", **SPAN).json()["results"]

    assert sum(Decimal(point["amount"]) for point in points) == Decimal("8.508")
    assert {point["at"] for point in points} == {"2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"}


@pytest.mark.parametrize(
    "query",
    [
        {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T10:00:00Z"},
        {"start": "2020-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"},
        {"group_by": "colour"},
        {"start": "yesterday"},
    ],
)
def test_period_that_makes_no_sense_is_refused_with_the_field(
    people: dict[str, User], query: dict[str, str]
) -> None:
    answer = get(people["lead"], "costs", **query)

    assert answer.status_code == 422
    assert answer.json()["errors"]


def test_prices_carry_source_and_date(people: dict[str, User]) -> None:
    rows = get(people["viewer"], "prices").json()

    by_type = {row["instance_type"]: row for row in rows}
    assert by_type["g5.xlarge"]["usd_per_hour_amount"] == "1.006000"
    assert by_type["g5.xlarge"]["valid_from"] == "2026-07-20"
    assert "AWS price list" in by_type["g5.xlarge"]["price_source"]
    assert "p5e.48xlarge" not in by_type


def test_shares_have_price_and_free_capacity(people: dict[str, User], cluster: Cluster) -> None:
    rows = get(people["member"], f"clusters/{cluster.pk}/shares").json()

    assert [(row["gpus"], row["usd_per_hour_amount"], row["free_now"]) for row in rows] == [
        (1, "1.418000", 2),
        (2, "2.836000", 1),
        (4, "5.672000", 0),
    ]
    Node.objects.update(taints=[{"key": "reserved", "value": "batch", "effect": "NoSchedule"}])
    reserved = get(people["member"], f"clusters/{cluster.pk}/shares").json()
    assert [(row["free_now"], row["free_tainted"], row["taints"]) for row in reserved] == [
        (0, 2, ["reserved=batch:NoSchedule"]),
        (0, 1, ["reserved=batch:NoSchedule"]),
        (0, 0, []),
    ]


@pytest.mark.parametrize("who", PEOPLE)
def test_only_admins_register_clusters(people: dict[str, User], who: str) -> None:
    draft = {
        "name": "prod",
        "kind": "eks",
        "eks_name": "prod",
        "gateway_url": "https://models.example.com",
    }

    answer = client_of(people[who]).post("/api/v1/clusters", draft, format="json")

    assert answer.status_code == (201 if who == "admin" else 403)
    assert Cluster.objects.filter(name="prod").exists() == (who == "admin")


def test_bad_cluster_is_refused_field_by_field(people: dict[str, User]) -> None:
    draft = {"name": "Prod!", "kind": "mainframe", "gateway_url": "models"}

    answer = client_of(people["admin"]).post("/api/v1/clusters", draft, format="json")

    assert answer.status_code == 422
    fields = {error["field"] for error in answer.json()["errors"]}
    assert fields == {"name", "kind", "gateway_url"}


def test_connection_test_says_what_stands_in_the_way(
    people: dict[str, User], cluster: Cluster, kube: FakeKube
) -> None:
    kube.broken = Unreachable("Cluster local does not answer: connection refused")

    answer = client_of(people["admin"]).post(f"/api/v1/clusters/{cluster.pk}/test")

    steps = [(check["name"], check["ok"]) for check in answer.json()]
    assert steps == [("Credentials", True), ("Port answers", True), ("Answers", False)]
    assert "kubeconfig" in answer.json()[-1]["fix"]
    assert Cluster.objects.get().is_reachable is False


def test_connection_test_of_a_good_cluster_lists_what_works(
    people: dict[str, User], cluster: Cluster, kube: FakeKube
) -> None:
    kube.put(node(), pod())

    answer = client_of(people["admin"]).post(f"/api/v1/clusters/{cluster.pk}/test")

    checks = {check["name"]: check["ok"] for check in answer.json()}
    assert (
        checks | {"Permissions": True, "KServe": True, "Gateway API": None, "KEDA": None} == checks
    )
    body = client_of(people["member"]).get(f"/api/v1/clusters/{cluster.pk}").json()
    assert body["capabilities"]["features"]["kserve"]["is_there"] is True
    assert body["capabilities"]["features"]["keda"]["is_there"] is False


@pytest.mark.parametrize("who", PEOPLE)
def test_only_admins_test_a_cluster(
    people: dict[str, User], cluster: Cluster, kube: FakeKube, who: str
) -> None:
    Cluster.objects.update(is_reachable=None)

    answer = client_of(people[who]).post(f"/api/v1/clusters/{cluster.pk}/test")

    assert answer.status_code == (200 if who == "admin" else 403)
    assert Cluster.objects.get().is_reachable == (True if who == "admin" else None)


def test_fleet_page_takes_a_constant_number_of_queries(
    people: dict[str, User], django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(7):  # type: ignore[operator]
        get(people["member"], "nodes")
