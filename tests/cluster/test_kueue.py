"""Kueue itself with deployments that name a queue: real Kueue gates their pods, the page says where they stand, and
real Triton starts when quota is free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.preflight.services.preflight import DeployDraft
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.spec.domain.engines import KSERVE_TRITON, TRITON, Engine
from deployments.spec.domain.serving_spec import Network, Placement, ServingSpec
from deployments.states import Environment
from fleet.models import Cluster
from tests.cluster.agents import Agents, agents, served_cluster
from tests.cluster.kubectl import Kubectl
from tests.cluster.kueue.fixtures import QUEUE, Quota, kueue, quota
from tests.cluster.scene import Scene
from tests.contract import adder
from tests.page import page

__all__ = ["agents", "kueue", "quota", "served_cluster"]


class Queued(Scene):
    """Its deployment names the queue of its namespace."""

    def request(self, engine: Engine = TRITON) -> None:
        """Approved; whether it becomes ready is Kueue's decision."""
        spec = ServingSpec(
            engine=engine,
            instance_type="g5.xlarge",
            cpu="1",
            memory="2Gi",
            network=Network(access="open"),
            placement=Placement(queue=QUEUE),
        )
        draft = DeployDraft(
            self.upload("adder", 1).pk,
            self.cluster.pk,
            "adder",
            spec,
            environment=Environment.STAGING,
        )
        self.approve(requests.request_deploy(actor=self.member, draft=draft))

    def url(self) -> str:
        return deployment_selectors.url_of(self.deployment())

    def page(self) -> str:
        address = reverse("deployment", args=(self.namespace, "adder"))
        return page(self.client.get(address)).text

    def observed(self) -> dict[str, Any]:
        """What REST says of its queue."""
        rest = APIClient()
        rest.force_authenticate(self.member)
        body = rest.get(f"/api/v1/deployments/{self.deployment().pk}").json()
        queue: dict[str, Any] | None = body["observed"]["revisions"].get("r1", {}).get("queue")
        return queue or {}

    def until_observed(self, **expected: Any) -> None:
        """Each of the values is what REST says, or part of it."""

        def is_so() -> bool:
            queue = self.observed()
            return all(_fits(queue.get(name), value) for name, value in expected.items())

        try:
            self.until(is_so)
        except AssertionError as error:
            raise AssertionError(f"{expected}: {self.observed()}\n{error}") from error


def _fits(actual: object, expected: object) -> bool:
    if isinstance(expected, str) and expected:
        return isinstance(actual, str) and expected in actual
    return actual == expected


@pytest.fixture
def queued(
    quota: Quota,
    served_cluster: Cluster,
    agents: Agents,
    namespace: str,
    admin: Kubectl,
    client: Client,
) -> Queued:
    assert quota.namespace == namespace
    return Queued(served_cluster, agents, namespace, admin, client)


def nodes(queued: Queued) -> list[str]:
    """Of the deployment's pods; empty for one that Kueue holds back."""
    pods = [pod for pod in queued.pods() if "slipway.dev/revision" in pod["metadata"]["labels"]]
    for pod in pods:
        gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
        assert ("kueue.x-k8s.io/admission" in gates) is ("nodeName" not in pod["spec"])
    return [pod["spec"].get("nodeName", "") for pod in pods]


@pytest.mark.parametrize("engine", [TRITON, KSERVE_TRITON])
def test_it_waits_as_third_runs_when_quota_is_free_and_makes_room_for_what_is_more_urgent(
    queued: Queued, quota: Quota, journey: Callable[[str], None], engine: Engine
) -> None:
    kueue = queued.cluster.capabilities["kueue"]
    assert [one["name"] for one in kueue["queues"] if one["namespace"] == queued.namespace] == [
        QUEUE
    ]
    assert kueue["visibility_api"] == "visibility.kueue.x-k8s.io/v1beta2"
    quota.train("first")
    quota.wait_for_admission("first")
    for count, name in ((2, "second"), (3, "third")):
        quota.train(name)
        quota.wait_for_workloads(count)

    queued.request(engine)
    queued.until_observed(state="pending", position=3, waiting=1, why="nvidia.com/gpu")
    assert nodes(queued) == [""]
    assert f"adder-r1 waits in queue {QUEUE}" in queued.page()
    assert "position 3" in queued.page()
    assert queued.deployment().state == "progressing"

    quota.finish("second")
    queued.until_observed(state="pending", position=2)
    quota.finish("first")
    quota.wait_for_admission("third")
    # Where quota is free before Kueue has put third back into its queue, adder runs for a moment and is evicted for it.
    queued.until_observed(position=1, waiting=1)
    queued.until(lambda: nodes(queued) == [""])

    quota.finish("third")
    queued.until(lambda: queued.deployment().state == "ready")
    assert queued.observed()["state"] == "admitted"
    assert "waits in queue" not in queued.page()
    url = queued.url()
    queued.until(lambda: adder.answers(url, 5)[2.0] == 5)

    quota.train("urgent", priority=1000)
    quota.wait_for_admission("urgent")
    queued.until_observed(state="evicted", position=1, eviction="reempted")
    assert queued.deployment().state == "degraded"
    assert "waits in queue" in queued.page()
    quota.finish("urgent")
    queued.until(lambda: queued.deployment().state == "ready")
    queued.until(lambda: adder.answers(url, 5)[2.0] == 5)
    journey(
        f"Kueue, {engine}: third in its queue, gated until quota was free, served, preempted, served again"
    )


def test_why_nothing_is_admitted_is_said(
    queued: Queued, quota: Quota, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    where = f"--namespace={queued.namespace}"
    quota.stop("Hold")
    queued.request()
    queued.until_observed(state="pending", why="is inactive: it is stopped (Hold)")
    assert "it is stopped (Hold)" in queued.page()
    admin.run("delete", "localqueue", QUEUE, where)
    queued.until_observed(state="pending", why="doesn't exist")
    assert nodes(queued) == [""]

    quota.stop("None")
    quota.open()
    queued.until(lambda: queued.deployment().state == "ready")

    quota.stop("HoldAndDrain")
    queued.until_observed(state="evicted", eviction="stopped")
    assert queued.deployment().state == "degraded"
    quota.stop("None")
    queued.until(lambda: queued.deployment().state == "ready")
    journey("Kueue: a stopped ClusterQueue, a missing LocalQueue and a drain are said by name")
