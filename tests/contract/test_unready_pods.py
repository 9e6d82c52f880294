"""Pods that never get ready leave their node when it is drained: the budget that the portal writes lets them go."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import dependent_objects, pod_placement
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import requests
from fleet.kube.domain.errors import Throttled
from fleet.kube.services import nodes, objects
from fleet.models import Node
from tests.accounts import make_user
from tests.cluster.kubectl import Kubectl
from tests.contract import conftest
from tests.contract.test_fleet_actions import node, patch

__all__ = ["node"]
pytestmark = pytest.mark.django_db
_DO_NOT_DISRUPT = {"karpenter.sh/do-not-disrupt": "true"}


@pytest.fixture
def served() -> ServedRevision:
    return conftest.served(serving_spec.TRITON)


@pytest.fixture
def starting(
    somebody: Kubectl, context: ManifestContext, served: ServedRevision, node: Node
) -> dict[str, Any]:
    """A pod of the revision that runs and is not ready, says its status: nothing runs there."""
    metadata = {
        "name": "detector-r1-0",
        "namespace": context.namespace,
        "labels": pod_placement.place(context, served).labels,
        "annotations": _DO_NOT_DISRUPT,
    }
    spec = {"nodeName": node.name, "containers": [{"name": "web", "image": "web"}]}
    somebody.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    body = {"status": status}
    patch(somebody, context.namespace, "pod", str(metadata["name"]), body, "--subresource=status")
    return somebody.get("pod", str(metadata["name"]), f"--namespace={context.namespace}")


def _set_budget(
    cluster_id: int, somebody: Kubectl, context: ManifestContext, budget: dict[str, Any]
) -> None:
    """With the status of one pod that is not ready. It is the controller's, where there is one."""
    (live,) = objects.apply(cluster_id=cluster_id, manifests=[budget])
    status = {
        "observedGeneration": live["metadata"]["generation"],
        "expectedPods": 1,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
    }
    name = live["metadata"]["name"]
    patch(somebody, context.namespace, "pdb", name, {"status": status}, "--subresource=status")


def _evict(cluster_id: int, pod: dict[str, Any]) -> None:
    metadata = pod["metadata"]
    nodes.evict(
        cluster_id=cluster_id,
        namespace=metadata["namespace"],
        pod=metadata["name"],
        uid=metadata["uid"],
    )


def test_the_budget_lets_a_pod_go_that_never_got_ready(
    cluster_id: int,
    somebody: Kubectl,
    context: ManifestContext,
    served: ServedRevision,
    starting: dict[str, Any],
) -> None:
    budget = dependent_objects.disruption_budget(context, served)
    spec = {
        name: value
        for name, value in budget["spec"].items()
        if name != "unhealthyPodEvictionPolicy"
    }
    _set_budget(cluster_id, somebody, context, {**budget, "spec": spec})
    with pytest.raises(Throttled):
        _evict(cluster_id, starting)
    there = somebody.get("pod", "detector-r1-0", f"--namespace={context.namespace}")["metadata"]

    _set_budget(cluster_id, somebody, context, budget)
    _evict(cluster_id, starting)

    assert "deletionTimestamp" not in there
    left = somebody.get("pods", f"--namespace={context.namespace}")["items"]
    assert all("deletionTimestamp" in pod["metadata"] for pod in left)


def test_who_drains_reads_that_a_pod_was_declared_not_to_be_disrupted(
    node: Node, starting: dict[str, Any]
) -> None:
    lead = make_user(is_platform_admin=True)

    action = requests.request_drain(actor=lead, node_id=node.pk, evict_unmanaged=True)

    warnings = " ".join(Evidence.from_json(action.evidence).warnings)
    assert (
        "1 pod is declared not to be disrupted (karpenter.sh/do-not-disrupt): Karpenter leaves it in "
        "place, and this drain evicts it anyway." in warnings
    )
