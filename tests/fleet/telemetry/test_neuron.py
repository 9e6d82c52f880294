"""How busy Neuron devices are: from neuron-monitor's page, on the node's page and in REST."""

from __future__ import annotations

from pathlib import Path

import pytest
import time_machine
from django.test import Client

from fleet.kube.domain.errors import NotAllowed
from fleet.models import Cluster, Node
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from fleet.telemetry.domain import neuron_metrics
from fleet.telemetry.domain.neuron_metrics import NeuronUse, NotNeuron
from fleet.telemetry.services import neuron
from tests.fleet.conftest import kube
from tests.fleet.fakes import FakeKube
from tests.fleet.neuron_nodes import monitor_pod, neuron_node
from tests.fleet.one_node import NOW, admin, still_clock
from tests.page import page

__all__ = ["admin", "kube", "still_clock"]
PAGE = (Path(__file__).parents[2] / "portal/monitoring/expositions/neuron.txt").read_text()
IDLE = "\n".join(line for line in PAGE.splitlines() if "runtime_tag" not in line) + "\n"


def observed(cluster: Cluster, *names: str) -> None:
    nodes = [neuron_node(name) for name in names]
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(nodes=nodes, pods=[]), at=NOW)


def test_a_page_has_the_use_of_all_processes() -> None:
    use = neuron_metrics.parse_page(PAGE)

    assert (use.busy_cores, use.memory_mib) == (pytest.approx(2.4), 20_480)


def test_a_page_on_which_nothing_runs_is_one_of_an_idle_node() -> None:
    use = neuron_metrics.parse_page(IDLE)

    assert use == NeuronUse(0, 0)
    assert (use.utilisation(12), use.utilisation(0)) == (0.0, None)


@pytest.mark.parametrize(
    ("line", "busy"),
    [
        ('neuroncore_utilization_ratio{neuroncore="0",runtime_tag="9"} 0.5', 0.5),
        ('neuroncore_utilization_ratio{neuroncore="0"} 7', 1.0),
        ('neuroncore_utilization_ratio{neuroncore="0"} NaN', 0),
        ('neuroncore_utilization_ratio{neuroncore="0"} -1', 0),
    ],
)
def test_what_is_read_of_a_core(line: str, busy: float) -> None:
    assert neuron_metrics.parse_page(line + "\n").busy_cores == busy


@pytest.mark.parametrize("text", ["<html>", "", "vllm:num_requests_running 1\n"])
def test_another_page_is_none(text: str) -> None:
    with pytest.raises(NotNeuron):
        neuron_metrics.parse_page(text)


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("label", ["app", "app.kubernetes.io/name"])
def test_each_node_is_read_by_its_own_monitor(
    label: str, kube: FakeKube, cluster: Cluster, admin: Client
) -> None:
    observed(cluster, "inf-1", "inf-2", "inf-3")
    for number in (1, 2):
        kube.put(monitor_pod(f"monitor-{number}", f"inf-{number}", **{label: "neuron-monitor"}))
    kube.put(monitor_pod("elsewhere", "cpu-1", **{label: "neuron-monitor"}))
    kube.pages.update({"monitor-1": PAGE, "monitor-2": NotAllowed("pods/proxy is forbidden")})

    assert neuron.read_all() == 1

    busy, unread, alone = Node.objects.order_by("name")
    assert (busy.neuron_utilisation, busy.neuron_memory_mib) == (pytest.approx(0.2), 20_480)
    assert busy.neuron_read_at == NOW
    assert {node.neuron_read_at for node in (unread, alone)} == {None}
    assert kube.proxied == [
        ("neuron-monitor", "monitor-1", 8000, "metrics"),
        ("neuron-monitor", "monitor-2", 8000, "metrics"),
    ]
    own = page(admin.get(f"/fleet/nodes/{busy.pk}"))
    assert own.term("NeuronCore use").startswith("20% of 12 cores, 20 GiB in use")
    assert "neuron-monitor was not read" in page(admin.get(f"/fleet/nodes/{alone.pk}")).text
    body = admin.get(f"/api/v1/nodes/{busy.pk}").json()
    assert (body["neuron_cores"], body["neuron_utilisation"]) == (2, pytest.approx(0.2))
    assert (body["neuron_memory_mib"], body["neuron_read_at"]) == (20_480, "2026-11-21T12:30:00Z")


def test_what_cannot_be_read_keeps_its_last_reading(kube: FakeKube, cluster: Cluster) -> None:
    observed(cluster, "inf-1")
    kube.put(monitor_pod("monitor-1", "inf-1", app="neuron-monitor"))
    kube.pages["monitor-1"] = PAGE
    with time_machine.travel(NOW, tick=False):
        neuron.read_all()
    kube.pages["monitor-1"] = "<html>"

    assert neuron.read_all() == 0

    assert Node.objects.get().neuron_read_at == NOW


def test_a_cluster_without_neuron_devices_is_not_queried(kube: FakeKube, cluster: Cluster) -> None:
    assert neuron.read_all() == 0
    assert kube.proxied == []
