"""Which labels and namespaces the operator's Prometheus selects monitors by."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.clusters.domain import monitor_selection
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.fakes import FakeKube

_STACK: dict[str, Any] = {
    "serviceMonitorSelector": {"matchLabels": {"release": "stack"}},
    "serviceMonitorNamespaceSelector": {},
    "podMonitorSelector": {"matchLabels": {"pods": "yes"}},
}


def prometheus(name: str, spec: dict[str, Any], namespace: str = "monitoring") -> dict[str, Any]:
    return {
        "kind": "Prometheus",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"replicas": 2, **spec},
    }


def _expression(operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": "team", "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ({}, {}),
        ({"matchLabels": {"release": "stack"}}, {"release": "stack"}),
        (_expression("In", "a", "b"), {"team": "a"}),
        (_expression("NotIn", "a"), {}),
        (_expression("Exists"), {"team": "true"}),
        (_expression("DoesNotExist"), {}),
        ({"matchLabels": {"team": "a"}, **_expression("Exists")}, {"team": "a"}),
        # No label is both.
        ({"matchLabels": {"team": "a"}, **_expression("NotIn", "a")}, None),
        ({"matchLabels": {"team": "a"}, **_expression("In", "b")}, None),
        (None, None),
    ],
)
def test_the_fewest_labels_that_are_selected(selector: Any, labels: Any) -> None:
    spec = {} if selector is None else {"serviceMonitorSelector": selector}

    (selection,) = monitor_selection.parse([prometheus("k8s", spec)])

    assert selection.labels_for("ServiceMonitor") == labels
    assert selection.labels_for("PodMonitor") is None


@pytest.mark.parametrize(
    ("selector", "namespace", "labels", "is_read"),
    [
        # Kubernetes: no selector is the Prometheus' own namespace, an empty one is all of them.
        (None, "vision", {}, False),
        (None, "monitoring", {}, True),
        ({}, "vision", {}, True),
        ({"matchLabels": {"watched": "yes"}}, "vision", {}, False),
        ({"matchLabels": {"watched": "yes"}}, "vision", {"watched": "yes"}, True),
        ({"matchLabels": {"kubernetes.io/metadata.name": "vision"}}, "vision", {}, True),
        ({"matchLabels": {"kubernetes.io/metadata.name": "vision"}}, "audio", {}, False),
    ],
)
def test_the_namespaces_that_are_read(
    selector: Any, namespace: str, labels: dict[str, str], is_read: bool
) -> None:
    spec = {} if selector is None else {"serviceMonitorNamespaceSelector": selector}

    (selection,) = monitor_selection.parse([prometheus("k8s", spec)])

    assert selection.reads_namespace("ServiceMonitor", namespace, labels) is is_read


def test_a_prometheus_of_all_namespaces_is_preferred_and_one_that_reads_nothing_left_out() -> None:
    own = prometheus("a", {"serviceMonitorSelector": {"matchLabels": {"own": "yes"}}})
    every = prometheus("b", _STACK)
    none = prometheus("c", {"serviceMonitorNamespaceSelector": {}})

    chosen = monitor_selection.choose(monitor_selection.parse([none, every, own]))
    without = monitor_selection.choose(monitor_selection.parse([none, own]))

    assert str(chosen) == "monitoring/b"
    assert str(without) == "monitoring/a"
    assert monitor_selection.choose(monitor_selection.parse([none])) is None


def _probed(cluster: Cluster) -> Capabilities:
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities)


@pytest.mark.django_db
def test_the_labels_are_read_from_the_cluster(kube: FakeKube, cluster: Cluster) -> None:
    kube.put(prometheus("k8s", _STACK))
    without_operator = _probed(cluster)
    kube.api_groups["monitoring.coreos.com"] = ["v1"]

    read = _probed(cluster)
    kube.forbidden.add("prometheuses")
    forbidden = _probed(cluster)

    assert (without_operator.prometheuses, without_operator.monitor_labels) == (None, {})
    assert read.monitor_labels == {"release": "stack"}
    assert read.prometheuses == monitor_selection.parse([prometheus("k8s", _STACK)])
    assert (forbidden.prometheuses, forbidden.monitor_labels) == (None, {})
