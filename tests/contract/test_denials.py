"""Pods that the cluster refuses to make: the deployment names the reason, whoever makes the pods."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from deployments.models import Deployment
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until
from tests.contract.conftest import named_cluster
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world
from tests.contract.denials import DENIALS, Denial
from tests.contract.reported import needs_administrator, pods_of

__all__ = ["cluster_calls", "delivered", "moving_clock", "world"]
pytestmark = needs_administrator
_WORKLOADS = {"triton": "waits-r1", "kserve-triton": "waits-r1-predictor"}


@pytest.mark.parametrize("engine", _WORKLOADS)
@pytest.mark.parametrize("denial", DENIALS, ids=lambda denial: denial.name)
def test_the_reason_is_on_the_deployment(
    delivered: Delivered, somebody: Kubectl, denial: Denial, engine: str
) -> None:
    is_real = named_cluster() is not None
    workload = _WORKLOADS[engine]
    enforced = denial.enforced(somebody, delivered.namespace) if is_real else nullcontext()
    with enforced:
        deployment = delivered.deployed("waits", engine=engine)
        if not is_real:
            _write_refusal(delivered, somebody, deployment, workload, denial)
        wait_until(lambda: _failure(delivered, workload) != "", lambda: pods_of(delivered))
        delivered.reconcile_now(deployment)

        failure = _failure(delivered, workload)
        assert denial.quoted in failure
        assert deployment.state_reason.startswith(f"{denial.explained}: {failure[:200]}")
        assert pods_of(delivered) == []


def _failure(delivered: Delivered, workload: str) -> str:
    """What the ReplicaSet controller says of the pods that it cannot make."""
    live = delivered.get("apps/v1", "Deployment", workload) or {}
    conditions = live.get("status", {}).get("conditions", [])
    return next((str(one["message"]) for one in conditions if one["type"] == "ReplicaFailure"), "")


def _write_refusal(
    delivered: Delivered,
    somebody: Kubectl,
    deployment: Deployment,
    workload: str,
    denial: Denial,
) -> None:
    if workload != f"{deployment.name}-r1":
        somebody.apply([_of_kserve(delivered, f"{deployment.name}-r1", workload)])
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": denial.message(f"{workload}-5d8"),
    }
    where = (f"--namespace={delivered.namespace}", "--subresource=status")
    somebody.patch("deployment", workload, *where, patch={"status": {"conditions": [failure]}})


def _of_kserve(delivered: Delivered, service: str, workload: str) -> dict[str, Any]:
    """The Deployment that KServe makes: with the labels of the InferenceService, and owned by it."""
    owner = delivered.get("serving.kserve.io/v1beta1", "InferenceService", service)
    labels = {"app": workload}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": workload,
            "namespace": delivered.namespace,
            "labels": owner["metadata"]["labels"],
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": service,
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "kserve-container", "image": "triton:1"}]},
            },
        },
    }
