"""Which caller sent how much, and what of the bill that is: from the gateway's counters to pages."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from deployments.callers.services import keys, usage
from deployments.models import Deployment
from fleet.costs.selectors.callers import Total
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from fleet.models import CallerHour, LedgerRow, Workload, WorkloadHour
from tests.deployments.callers.test_keys import keyed, make
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.fleet.costs.focus_rules import violations
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_TAB = "/vision/deployments/detector/callers"


class Gateway:
    """The proxy's page of metrics: requests by client."""

    def __init__(self, world: World) -> None:
        self.served: dict[str, int] = {}
        self.paths: list[str] = []
        world.cluster.pods = self.answer
        world.cluster.objects["Pod", "slipway-gateway", "proxy"] = {
            "kind": "Pod",
            "metadata": {
                "name": "proxy",
                "namespace": "slipway-gateway",
                "labels": {"gateway.networking.k8s.io/gateway-name": "slipway"},
                "annotations": {"prometheus.io/port": "19001"},
            },
            "status": {"phase": "Running"},
        }

    def answer(self, request: PodRequest) -> PodResponse:
        self.paths.append(request.path)
        lines = [
            "envoy_vhost_vcluster_upstream_rq_completed{envoy_virtual_cluster="
            f'"vision/detector/{client.replace(".", "/")}"}} {count}\n'
            for client, count in self.served.items()
        ]
        return PodResponse(200, "".join(lines).encode())


def at_half_past(world: World) -> datetime:
    """Move the clock to the middle of an hour of a day, and return the hour's start."""
    hour = world.clock.at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    world.clock.at = hour + timedelta(minutes=30)
    return hour


def charge(deployment: Deployment, hour: datetime, cost: str, served: int) -> None:
    """A sealed hour of the deployment's pod, in which its server answered so many requests."""
    workload = Workload.objects.get(name__startswith=deployment.name)
    WorkloadHour.objects.create(
        workload=workload, start=hour, request_success=served, observed_ms=3_600_000
    )
    LedgerRow.objects.create(
        hour=hour,
        cluster_name=workload.cluster.name,
        node_uid="n1",
        node_name="node-1",
        instance_type="g5.xlarge",
        kind="allocated",
        team_slug="vision",
        namespace="vision",
        workload_name=workload.name,
        workload_labels=workload.labels,
        gpu_milliseconds=3_600_000,
        cost_amount=Decimal(cost),
        usd_per_hour_amount=Decimal("1.006"),
        sealed_at=hour,
    )


def read(world: World, gateway: Gateway, **sent: int) -> None:
    for client, count in sent.items():
        name = client.replace("_", ".")
        gateway.served[name] = gateway.served.get(name, 0) + count
    world.clock.move(10)
    usage.count(cluster_id=world.cluster_id)


def signed_in(user: object) -> Client:
    client = Client()
    client.force_login(user)  # type: ignore[arg-type]  # as in the tests beside
    return client


@pytest.fixture
def billed(world: World) -> Deployment:
    """An hour of $1.006 in which billing sent 30 requests with two keys, search 10, and 8 had no key."""
    deployment = keyed(world)
    hour = at_half_past(world)
    gateway = Gateway(world)
    old, search = make(world, deployment), make(world, deployment, "search")
    read(world, gateway, **{f"billing_{old.row.pk}": 12, f"search_{search.row.pk}": 4})
    new = keys.rotate(
        actor=world.lead, deployment_id=deployment.pk, key_id=old.row.pk, overlap_hours=0
    )
    read(
        world,
        gateway,
        **{f"billing_{old.row.pk}": 3, f"billing_{new.row.pk}": 15, f"search_{search.row.pk}": 6},
    )
    charge(deployment, hour, "1.006", 48)
    assert not [path for path in gateway.paths if "billing" in path or "slc_" in path]
    return deployment


def test_the_tab_names_each_caller_its_requests_and_its_dollars(
    world: World, billed: Deployment
) -> None:
    shown = page(signed_in(world.member).get(_TAB))

    assert {row.caller: row.requests for row in CallerHour.objects.exclude(caller="")} == {
        "billing": 30,
        "search": 10,
    }
    # 30, 10 and 8 of 48 of $1.006, to the cent.
    assert [list(row.values()) for row in shown.rows if "Cost" in row] == [
        ["billing", "30", "62%", "$0.63"],
        ["search", "10", "21%", "$0.21"],
        ["Not attributed requests without a caller's key", "\u2013", "17%", "$0.17"],
    ]


def test_the_team_sees_all_its_callers_and_downloads_them(world: World, billed: Deployment) -> None:
    client = signed_in(world.member)

    answer = client.get("/costs/callers")
    shown = page(answer)
    lines = read_csv(client.get("/costs/callers.csv"))
    stranger = page(signed_in(world.stranger).get("/costs/callers?team=vision"))

    assert [list(row.values())[:3] for row in shown.rows if "Cost" in row] == [
        ["detector", "billing", "30"],
        ["detector", "search", "10"],
        ["detector", "Not attributed requests without a caller's key", "\u2013"],
    ]
    assert [(line["caller"], line["requests"], line["cost_usd"]) for line in lines] == [
        ("billing", "30", "0.628750"),
        ("search", "10", "0.209583"),
        ("", "", "0.167667"),
    ]
    assert sum(Decimal(line["cost_usd"]) for line in lines) == Decimal("1.006")
    assert "billing" not in stranger.text
    assert answer.context["total"] == Total(requests=40, cents_amount=Decimal("1.01"))


def test_exports_name_the_caller_and_sum_to_the_ledger(world: World, billed: Deployment) -> None:
    client = signed_in(world.member)

    ledger = read_csv(client.get("/costs/ledger.csv"))
    focus = read_csv(client.get("/api/v1/costs/ledger.csv"))

    assert {line["caller"]: line["cost_usd"] for line in ledger if line["is_sealed"] == "True"} == {
        "billing": "0.628750",
        "search": "0.209583",
        "": "0.167667",
    }
    sealed = [line for line in focus if line["x_IsSealed"] == "true"]
    named = {
        json.loads(line["AllocatedTags"]).get("slipway.dev/caller"): line["BilledCost"]
        for line in sealed
    }
    assert named == {"billing": "0.628750", "search": "0.209583", None: "0.167667"}
    assert violations(focus) == []
    assert sum(int(line["x_GpuMilliseconds"]) for line in sealed) == 3_600_000
    assert LedgerRow.objects.get().cost_amount == Decimal("1.006")


def test_pages_take_as_many_queries_for_many_callers(world: World, billed: Deployment) -> None:
    hour = CallerHour.objects.earliest("hour").hour
    client = signed_in(world.member)
    pages = (_TAB, "/costs/callers")
    # The first page of a team is remembered.
    client.get(_TAB)
    before = [queries_of(client, address) for address in pages]

    CallerHour.objects.bulk_create(
        CallerHour(
            team_slug="vision", deployment=name, caller=f"c{number}", hour=hour, requests=number
        )
        for name in ("detector", "other", "third")
        for number in range(1, 40)
    )

    assert [queries_of(client, address) for address in pages] == before
    assert page(client.get(_TAB)).text.count("c39") == 1


def queries_of(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as context:
        assert client.get(address).status_code == 200
    return len(context)


def read_csv(answer: Any) -> list[dict[str, str]]:
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(StringIO(text)))


def test_nothing_is_said_to_be_zero_that_is_not_known(world: World) -> None:
    deployment = keyed(world)
    make(world, deployment)
    client = signed_in(world.member)
    before = page(client.get(_TAB)).text
    world.cluster.objects.pop(("Pod", "slipway-gateway", "proxy"), None)
    usage.count(cluster_id=world.cluster_id)

    after = page(client.get(_TAB)).text

    assert "Not counted at the moment: The gateway was not read yet." in before
    assert "Not counted at the moment: The gateway has no counter of callers" in after
    assert not CallerHour.objects.exists()


def test_clusters_without_keys_are_not_read(world: World) -> None:
    world.serving()
    gateway = Gateway(world)

    usage.sweep()
    usage.count(cluster_id=world.cluster_id)

    assert gateway.paths == []


def test_rest_has_pages_of_callers(world: World, billed: Deployment) -> None:
    client = APIClient()
    client.force_authenticate(world.member)
    stranger = APIClient()
    stranger.force_authenticate(world.stranger)
    address = "/api/v1/teams/vision/caller-costs"

    first = client.get(address, {"limit": 2}).json()
    second = client.get(first["next"]).json()
    other = client.get(address, {"deployment": "other"}).json()

    assert [(row["caller"], row["requests"], row["amount"]) for row in first["results"]] == [
        ("billing", 30, "0.628750"),
        ("search", 10, "0.209583"),
    ]
    assert (second["next"], other["results"]) == (None, [])
    assert second["results"] == [
        {
            "team_slug": "vision",
            "deployment": "detector",
            "caller": "",
            "not_attributed": "without_key",
            "requests": None,
            "amount": "0.167667",
            "ratio": pytest.approx(8 / 48, abs=1e-6),
        }
    ]
    refused = [
        client.get(address, {"cursor": "nonsense"}),
        client.get(address, {"start": "2026-01-02T00:00Z", "end": "2026-01-01T00:00Z"}),
        client.get(address, {"teem": "vision"}),
        stranger.get(address),
    ]
    assert [answer.status_code for answer in refused] == [400, 422, 422, 404]
