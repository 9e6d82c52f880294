"""Where pods stand in a queue, from what Kueue writes on pods and Workloads."""

from __future__ import annotations

from typing import Any

from deployments.serving.domain import queue_state
from deployments.serving.domain.queue_state import QueueState
from tests.deployments.queues import FULL, condition

GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
MANAGED = {"kueue.x-k8s.io/managed": "true"}


def pod(name: str, labels: dict[str, str] | None = None, *, gated: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {**MANAGED, **(labels or {})}},
        "spec": GATE if gated else {},
    }


def workload(name: str, owner: str = "", *conditions: dict[str, str]) -> dict[str, Any]:
    owners = [{"kind": "Pod", "name": owner, "uid": f"uid-{owner}"}] if owner else []
    return {
        "metadata": {"name": name, "ownerReferences": owners},
        "status": {"conditions": list(conditions)},
    }


def of_pods(
    pods: list[dict[str, Any]],
    workloads: list[dict[str, Any]] | None = None,
    positions: dict[str, int] | None = None,
) -> QueueState | None:
    return queue_state.read_pod_queue("serving", pods, workloads or [], positions)


def test_the_first_of_several_pods_that_wait_gives_the_position() -> None:
    pods = [pod("a", gated=False), pod("b"), pod("c")]
    workloads = [workload("of-b", "b"), workload("of-c", "c"), workload("other", "z")]

    state = of_pods(pods, workloads, {"other": 0, "of-c": 4, "of-b": 7})

    assert state == QueueState("serving", "pending", waiting=2, position=5)


def test_a_pod_whose_nodes_kueue_has_not_chosen_waits_too() -> None:
    admitted = {**pod("a"), "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}}
    others = {**pod("a"), "spec": {"schedulingGates": [{"name": "example.com/licence"}]}}

    assert of_pods([admitted], [workload("of-a", "a")], {}) == QueueState(
        "serving", "pending", waiting=1
    )
    assert of_pods([others]) == QueueState("serving", "admitted")


def test_pods_of_a_group_name_their_workload() -> None:
    group = {"kueue.x-k8s.io/prebuilt-workload-name": "leaderworkerset-a-0"}
    full = condition("QuotaReserved", "False", "Pending", FULL)

    state = of_pods(
        [pod("a-0", group), pod("a-0-1", group)],
        [workload("leaderworkerset-a-0", "", full)],
        {"leaderworkerset-a-0": 1},
    )

    assert state == QueueState("serving", "pending", waiting=2, position=2, why=FULL)


def test_an_admission_check_that_holds_a_workload_is_the_reason() -> None:
    reserved = condition("QuotaReserved", "True", "QuotaReserved", "Quota reserved")
    held = condition("Admitted", "False", "UnsatisfiedChecks", "waiting for a node group")

    state = of_pods([pod("a")], [workload("of-a", "a", reserved, held)], {})

    assert state is not None
    assert (state.position, state.why) == (None, "waiting for a node group")


def test_an_evicted_workload_says_why() -> None:
    evicted = condition("Evicted", "True", "ClusterQueueStopped", "The ClusterQueue is stopped")

    state = of_pods([pod("a")], [workload("of-a", "a", evicted)])

    assert state is not None
    assert (state.state, state.eviction) == ("evicted", "The ClusterQueue is stopped")


def test_no_pods_say_nothing_and_unmarked_ones_are_not_managed() -> None:
    unmarked = pod("a", gated=False)
    unmarked["metadata"]["labels"] = {}

    assert of_pods([]) is None
    assert of_pods([pod("a", gated=False)]) == QueueState("serving", "admitted")
    assert of_pods([unmarked]) == QueueState("serving", "ignored")


def test_the_message_has_what_is_known() -> None:
    assert QueueState("serving", "pending", waiting=1, position=1).message == (
        "1 pod waits in queue serving, position 1"
    )
    assert QueueState("serving", "pending", waiting=2, why="full").message == (
        "2 pods wait in queue serving, position not known: full"
    )
    assert QueueState.from_json(QueueState("serving", "admitted").to_json()) == QueueState(
        "serving", "admitted"
    )
