"""Kueue itself for the tests of a module, and queues whose quota a test decides on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster import build
from tests.cluster.kubectl import Kubectl
from tests.cluster.kueue import running
from tests.cluster.kueue.artifact import KUEUE
from tests.cluster.waiting import wait_until
from tests.contract import account

QUEUE = "gpu-team-a"
_API = "kueue.x-k8s.io/v1beta2"
_COVERED = ("cpu", "memory", "nvidia.com/gpu")
_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def kueue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """The end of its log."""
    made = build.cached(KUEUE)
    if made is None:
        pytest.skip(f"Kueue {KUEUE.release} was not built: there was no time for it")
    admin = account.administrator()
    assert admin is not None
    with running.running(made, admin, tmp_path_factory.mktemp("kueue")) as logs:
        yield logs


@dataclass(frozen=True, slots=True)
class Quota:
    """The LocalQueue of a team's namespace, and the ClusterQueue behind it, which has the namespace's name."""

    admin: Kubectl
    namespace: str
    logs: Callable[[], str]

    def set_gpus(self, gpus: int) -> None:
        flavor = {"apiVersion": _API, "kind": "ResourceFlavor", "metadata": {"name": "any"}}
        amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus)}
        resources = [{"name": name, "nominalQuota": amounts[name]} for name in _COVERED]
        flavors = [{"name": "any", "resources": resources}]
        spec = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": list(_COVERED), "flavors": flavors}],
        }
        metadata = {"name": self.namespace}
        queue = {"apiVersion": _API, "kind": "ClusterQueue", "metadata": metadata, "spec": spec}
        self.admin.apply([flavor, queue])

    def open(self) -> None:
        """The LocalQueue."""
        metadata = {"name": QUEUE, "namespace": self.namespace}
        spec = {"clusterQueue": self.namespace}
        queue = {"apiVersion": _API, "kind": "LocalQueue", "metadata": metadata, "spec": spec}
        self.admin.apply([queue])
        self._wait_for_queue()

    def stop(self, policy: str) -> None:
        """Of the ClusterQueue: None, Hold or HoldAndDrain."""
        self.admin.patch("clusterqueue", self.namespace, patch={"spec": {"stopPolicy": policy}})

    def train(self, name: str, *, priority: int = 10) -> None:
        """A Job of somebody else with one GPU. No node takes its pod: while it is admitted it holds quota. Its priority puts
        it before what the portal requests, also within one second, which Kueue's order by age does not tell apart.
        """
        labels = {
            "kueue.x-k8s.io/queue-name": QUEUE,
            "kueue.x-k8s.io/priority-class": f"p{priority}",
        }
        priority_class = {
            "apiVersion": _API,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": f"p{priority}"},
            "value": priority,
        }
        amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
        container = {
            "name": "train",
            "image": "train",
            "resources": {"requests": amounts, "limits": amounts},
            "securityContext": _SECURITY,
        }
        pod = {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": "none"},
            "containers": [container],
        }
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        spec = {"suspend": True, "template": {"spec": pod}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        self.admin.apply([priority_class, job])

    def finish(self, name: str) -> None:
        self.admin.run("delete", "job", name, f"--namespace={self.namespace}")

    def is_admitted(self, name: str) -> bool:
        job = self.admin.get("job", name, f"--namespace={self.namespace}")
        return not job["spec"].get("suspend")

    def wait_for_admission(self, name: str) -> None:
        wait_until(lambda: self.is_admitted(name), self.describe)

    def wait_for_workloads(self, count: int) -> None:
        """Kueue has seen as many, so that what comes next waits behind them."""
        wait_until(lambda: len(self._workloads()) == count, self.describe)

    def describe(self) -> str:
        where = f"--namespace={self.namespace}"
        seen = self.admin.run("get", "workloads,localqueues,jobs,pods", where, "--output=yaml")
        return f"{seen[-6000:]}\n{self.logs()}"

    def _workloads(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.admin.get(
            "workloads.kueue.x-k8s.io", f"--namespace={self.namespace}"
        )["items"]
        return listed

    def _wait_for_queue(self) -> None:
        def is_active() -> bool:
            found = self.admin.get("localqueue", QUEUE, f"--namespace={self.namespace}")
            conditions = found.get("status", {}).get("conditions", [])
            return any((one["type"], one["status"]) == ("Active", "True") for one in conditions)

        wait_until(is_active, self.describe)


@pytest.fixture
def quota(kueue: Callable[[], str], admin: Kubectl, namespace: str) -> Iterator[Quota]:
    """A queue with one GPU."""
    made = Quota(admin, namespace, kueue)
    made.set_gpus(1)
    made.open()
    yield made
    where = f"--namespace={namespace}"
    admin.run("delete", "jobs,deployments,inferenceservices", "--all", where)
    admin.run("delete", "clusterqueue", namespace, "--wait=false")
