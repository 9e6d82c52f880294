"""Kueue as a cluster has it: its API versions, its queues, and what the portal may not read."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.queues import Kueue, LocalQueue
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db


def local_queue(namespace: str, name: str, **status: Any) -> dict[str, Any]:
    return {
        "kind": "LocalQueue",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"clusterQueue": "gpus", "stopPolicy": "None"},
        "status": status,
    }


def probed(cluster: Cluster) -> Capabilities:
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities)


def test_queues_are_read_in_the_version_that_the_cluster_prefers(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.api_groups["kueue.x-k8s.io"] = ["v1beta2", "v1beta1"]
    kube.api_groups["visibility.kueue.x-k8s.io"] = ["v1beta2"]
    inactive = {"type": "Active", "status": "False", "message": "ClusterQueue gpus is inactive"}
    kube.put(
        local_queue("vision", "serving", pendingWorkloads=3, admittedWorkloads=1),
        local_queue("nlp", "serving", conditions=[inactive]),
    )

    result = probed(cluster)

    assert result.feature("kueue") == Feature(True, "v1beta2")
    assert result.kueue == Kueue(
        "kueue.x-k8s.io/v1beta2",
        "visibility.kueue.x-k8s.io/v1beta2",
        (
            LocalQueue("nlp", "serving", "gpus", problem="ClusterQueue gpus is inactive"),
            LocalQueue("vision", "serving", "gpus", pending=3, admitted=1),
        ),
    )
    assert result.kueue.names_in("vision") == ["serving"]
    assert Capabilities.from_json(result.to_json()) == result


def test_queues_that_may_not_be_listed_are_not_known(kube: FakeKube, cluster: Cluster) -> None:
    kube.api_groups["kueue.x-k8s.io"] = ["v1beta1"]
    kube.forbidden = {"localqueues"}

    result = probed(cluster)

    assert result.kueue == Kueue("kueue.x-k8s.io/v1beta1", "", None)
    assert result.kueue.pending_type("serving") is None


def test_a_cluster_without_kueue_has_none(kube: FakeKube, cluster: Cluster) -> None:
    result = probed(cluster)

    assert (result.kueue, result.feature("kueue")) == (None, Feature(False))
