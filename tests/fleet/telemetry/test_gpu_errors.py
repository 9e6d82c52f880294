"""The last XID of each GPU: from dcgm-exporter's page and from Prometheus by one reader, on the node's page and as an alert."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.capacity.selectors import notices
from fleet.clusters.domain import rbac
from fleet.clusters.domain.prometheus import PrometheusSample, PrometheusUnreachable, QueryResult
from fleet.clusters.services import prometheus
from fleet.kube.domain.errors import NotAllowed
from fleet.models import Cluster, Node
from fleet.observation.domain.gpu_errors import GpuError
from fleet.telemetry.domain import dcgm_metrics
from fleet.telemetry.domain.dcgm_metrics import NotDcgm
from fleet.telemetry.services import gpu_errors
from tests.fleet.conftest import kube
from tests.fleet.fakes import FakeKube
from tests.fleet.one_node import NOW, admin, member, node, still_clock, vision
from tests.page import page

__all__ = ["admin", "kube", "member", "node", "still_clock", "vision"]
PAGE = (Path(__file__).parents[2] / "portal/monitoring/expositions/dcgm.txt").read_text()
BUS = GpuError(gpu="0", uuid="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52", xid=79)


def page_with(xid: float) -> str:
    """A page as dcgm-exporter writes it, with this last error."""
    lines = [
        f"{line.rpartition(' ')[0]} {xid:g}" if line.startswith(dcgm_metrics.XID) else line
        for line in PAGE.splitlines()
    ]
    return "\n".join(lines) + "\n"


def sample(value: float, **labels: str) -> PrometheusSample:
    return PrometheusSample(value, {"gpu": "0", "UUID": "GPU-1", **labels})


def test_a_page_and_prometheus_are_read_alike() -> None:
    of_page = dcgm_metrics.by_node(dcgm_metrics.parse_page(page_with(79)), nodes=(), node="node-1")
    of_query = dcgm_metrics.by_node(
        dcgm_metrics.parse_page(page_with(79)), nodes={"node-1", "node-2"}
    )
    assert of_page == of_query == {"node-1": (BUS,)}
    healthy = dcgm_metrics.parse_page(PAGE)
    assert dcgm_metrics.by_node(healthy, nodes={"node-1"}) == {"node-1": ()}


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        # Pods that share a GPU have a series each.
        ([sample(79, node="n"), sample(79, node="n", pod="b")], {"n": [79]}),
        ([sample(0, node="n"), sample(48, node="n", gpu="1", UUID="GPU-2")], {"n": [48]}),
        # What the scrape says of the node comes before the exporter's name of it.
        ([sample(79, node="n", Hostname="exporter-x7")], {"n": [79]}),
        ([sample(79, Hostname="n")], {"n": [79]}),
        # Not of this cluster, or no number of an error.
        ([sample(79, node="other")], {}),
        ([sample(float("nan"), node="n"), sample(-1, node="n"), sample(1e18, node="n")], {}),
    ],
)
def test_what_is_read_of_samples(
    samples: list[PrometheusSample], found: dict[str, list[int]]
) -> None:
    read = dcgm_metrics.by_node(samples, nodes={"n"})
    assert {name: [error.xid for error in errors] for name, errors in read.items()} == found


@pytest.mark.parametrize("text", ["<html>", "# nothing\n", "nv_inference_count 1\n"])
def test_another_page_is_none(text: str) -> None:
    with pytest.raises(NotDcgm):
        dcgm_metrics.parse_page(text)


def exporter(name: str, node_name: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "gpu-operator", "name": name, "uid": name, "labels": labels},
        "spec": {
            "nodeName": node_name,
            "containers": [{"ports": [{"name": "metrics", "containerPort": 9401}]}],
        },
        "status": {"phase": "Running"},
    }


@pytest.mark.usefixtures("still_clock")
def test_exporters_are_read_through_the_api_server_and_a_fault_is_a_notice(
    kube: FakeKube, node: Node, member: Client
) -> None:
    kube.put(exporter("dcgm-1", node.name, app="nvidia-dcgm-exporter"))
    kube.put(exporter("other", node.name, app="something-else"))
    kube.pages["dcgm-1"] = page_with(79)

    assert gpu_errors.read_all() == 1

    node.refresh_from_db()
    assert node.xids == [BUS.to_json() | {"since": NOW.isoformat()}]
    [notice] = notices.list_node_notices(node)
    assert (notice.title, notice.xid, notice.source) == ("XID 79", 79, "dcgm-exporter")
    assert notice.detail == "GPU has fallen off the bus. GPU 0."
    assert [row.name for row in notices.list_nodes()] == [node.name]
    own = page(member.get(f"/fleet/nodes/{node.pk}"))
    assert own.term("GPU errors").startswith("GPU 0: XID 79, GPU has fallen off the bus")
    assert "XID 79. GPU has fallen off the bus. GPU 0. Reported by dcgm-exporter." in own.text
    body = member.get(f"/api/v1/nodes/{node.pk}").json()
    assert [(e["gpu"], e["xid"], e["is_of_program"]) for e in body["gpu_errors"]] == [
        ("0", 79, False)
    ]
    assert kube.proxied == [("gpu-operator", "dcgm-1", 9401, "metrics")]


@pytest.mark.usefixtures("still_clock")
def test_an_error_keeps_its_first_time_and_goes_when_the_exporter_forgets_it(
    kube: FakeKube, node: Node
) -> None:
    kube.put(exporter("dcgm-1", node.name, **{"app.kubernetes.io/name": "dcgm-exporter"}))
    kube.pages["dcgm-1"] = page_with(79)
    gpu_errors.read_all()
    with time_machine.travel(NOW + timedelta(minutes=5), tick=False):
        gpu_errors.read_all()
        node.refresh_from_db()
        assert [each["since"] for each in node.xids or []] == [NOW.isoformat()]
        kube.pages["dcgm-1"] = PAGE
        gpu_errors.read_all()
        node.refresh_from_db()
        assert node.xids == []
        assert notices.list_node_notices(node) == ()


@pytest.mark.usefixtures("still_clock")
def test_what_cannot_be_read_is_not_known_after_a_while(kube: FakeKube, node: Node) -> None:
    Node.objects.update(xids=[BUS.to_json() | {"since": ""}], xids_read_at=NOW)
    kube.broken = NotAllowed("no")
    assert gpu_errors.read_all() == 0
    node.refresh_from_db()
    assert len(notices.list_node_notices(node)) == 1
    with time_machine.travel(NOW + timedelta(minutes=16), tick=False):
        assert notices.list_node_notices(node) == ()
        assert notices.list_nodes() == []


@pytest.mark.usefixtures("still_clock")
def test_a_programs_own_fault_is_shown_and_is_no_fault_of_the_gpu(
    kube: FakeKube, node: Node, member: Client
) -> None:
    kube.put(exporter("dcgm-1", node.name, app="nvidia-dcgm-exporter"))
    kube.pages["dcgm-1"] = page_with(31)
    gpu_errors.read_all()
    node.refresh_from_db()

    assert notices.list_node_notices(node) == ()
    shown = page(member.get(f"/fleet/nodes/{node.pk}")).term("GPU errors")
    assert "XID 31, GPU memory page fault (a program’s own fault)" in shown  # noqa: RUF001


@pytest.mark.usefixtures("still_clock")
def test_prometheus_is_queried_first_and_the_exporters_where_it_has_nothing(
    kube: FakeKube, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.update(prometheus_url="http://prometheus")
    answers: list[Any] = [
        QueryResult("vector", (sample(95, node=node.name),), ()),
        QueryResult("vector", (), ()),
        PrometheusUnreachable("gone"),
    ]
    asked: list[Any] = []

    def query(*, cluster_id: int, queries: list[str]) -> list[Any]:
        asked.append(queries)
        return [answers[len(asked) - 1]]

    monkeypatch.setattr(prometheus, "query", query)
    kube.put(exporter("dcgm-1", node.name, app="nvidia-dcgm-exporter"))
    kube.pages["dcgm-1"] = page_with(79)
    read = []
    for _ in answers:
        gpu_errors.read_all()
        node.refresh_from_db()
        read.append([row["xid"] for row in node.xids])

    assert read == [[95], [79], [79]]
    assert asked == [[dcgm_metrics.QUERY]] * 3
    assert len(kube.proxied) == 2


def test_exporters_have_a_role_in_their_namespace_only() -> None:
    made = rbac.manifests(
        account={"kind": "Group", "name": "slipway"},
        team_namespaces=["vision"],
        exporter_namespaces=["gpu-operator"],
    )
    [role] = [
        item
        for item in made
        if item["kind"] == "Role" and item["metadata"]["name"] == "slipway-gpu-metrics"
    ]
    assert role["metadata"]["namespace"] == "gpu-operator"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}]
