"""Knative's flags for pods, read from the ConfigMap `config-features`."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.clusters.domain import knative_flags
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.fakes import FakeKube

_AFFINITY, _INIT, _NODE_SELECTOR, _TOLERATIONS = knative_flags.ALWAYS_NEEDED
_EMPTY_DIR = "kubernetes.podspec-volumes-emptydir"


@pytest.mark.parametrize(
    ("data", "off"),
    [
        # The defaults of Knative Serving.
        ({}, [_AFFINITY, _NODE_SELECTOR]),
        ({_NODE_SELECTOR: "enabled"}, [_AFFINITY]),
        ({_NODE_SELECTOR: "Allowed", _AFFINITY: "ENABLED"}, []),
        ({_EMPTY_DIR: "disabled"}, [_AFFINITY, _NODE_SELECTOR, _EMPTY_DIR]),
        # Knative ignores a value that it does not know, and so the default holds.
        ({_NODE_SELECTOR: "true", "_example": "kubernetes.podspec-affinity: enabled"}, None),
    ],
)
def test_a_flag_is_off_unless_it_is_set_or_on_by_default(data: Any, off: list[str] | None) -> None:
    needed = (_NODE_SELECTOR, _AFFINITY, _EMPTY_DIR)

    refused = knative_flags.list_disabled(knative_flags.parse(data), needed)

    assert refused == (off if off is not None else [_AFFINITY, _NODE_SELECTOR])


def _features(data: dict[str, str]) -> dict[str, Any]:
    namespace, name = knative_flags.CONFIG_MAP
    return {
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name},
        "data": {"_example": "...", **data},
    }


def _probed(cluster: Cluster) -> Capabilities:
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities)


@pytest.mark.django_db
def test_knative_without_node_selectors_is_not_offered_and_names_the_flags(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.api_groups["serving.knative.dev"] = ["v1"]
    kube.put(_features({_TOLERATIONS: "enabled", _INIT: "enabled"}))
    off = _probed(cluster)
    on_flags = {
        _TOLERATIONS: "enabled",
        _INIT: "enabled",
        _NODE_SELECTOR: "allowed",
        _AFFINITY: "Enabled",
    }
    kube.put(_features(on_flags))
    on = _probed(cluster)
    kube.forbidden.add("configmaps")
    unknown = _probed(cluster)

    assert off.offers("knative").ok is False
    assert off.offers("knative").why.startswith(
        "Knative refuses the pods of models: set kubernetes.podspec-affinity and "
        "kubernetes.podspec-nodeselector to enabled in ConfigMap config-features of knative-serving. KServe in Knative mode is needed for"
    )
    assert on.offers("knative").ok is True
    assert on.knative_flags == {**on_flags, _AFFINITY: "enabled"}
    assert (unknown.offers("knative").ok, unknown.knative_flags) == (True, None)
