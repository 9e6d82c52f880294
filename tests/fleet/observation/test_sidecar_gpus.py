"""GPUs of a pod's containers, init containers and native sidecars, as the scheduler reserves them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.observation.domain import parse, pod_requests
from slipway_localcluster.controllers import resources

RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "aws.amazon.com/neuron")


def container(gpus: int, *, is_sidecar: bool = False, resource: str = RESOURCES[0]) -> Any:
    amounts = {resource: str(gpus)} if gpus else {}
    fields = {"restartPolicy": "Always"} if is_sidecar else {}
    return {"resources": {"limits": amounts}, **fields}


def most_at_once(spec: dict[str, Any], resource: str) -> int:
    """Start the pod step by step: an init container ends before the next one starts, a sidecar goes on."""
    running: list[Any] = []
    most = 0
    for one in spec.get("initContainers", []):
        together = [*running, one]
        most = max(most, sum(int(c["resources"]["limits"].get(resource, 0)) for c in together))
        if one.get("restartPolicy") == "Always":
            running.append(one)
    together = [*running, *spec["containers"]]
    return max(most, sum(int(c["resources"]["limits"].get(resource, 0)) for c in together))


@given(
    st.sampled_from(RESOURCES),
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=4),
)
def test_a_pod_holds_what_runs_at_once(
    resource: str, containers: list[int], init: list[tuple[int, bool]]
) -> None:
    spec = {
        "containers": [container(gpus, resource=resource) for gpus in containers],
        "initContainers": [
            container(gpus, is_sidecar=is_sidecar, resource=resource) for gpus, is_sidecar in init
        ],
    }
    expected = most_at_once(spec, resource)

    assert pod_requests.gpus(spec) == ((resource, expected) if expected else ("", 0))
    assert resources.sum_pod_requests({"spec": spec}).get(resource, Decimal(0)) == expected


@pytest.mark.parametrize("where", ["limits", "requests"])
def test_the_gpu_of_a_sidecar_alone_counts(where: str) -> None:
    sidecar = {"restartPolicy": "Always", "resources": {where: {"nvidia.com/gpu": "1"}}}

    assert pod_requests.gpus({"containers": [{}], "initContainers": [sidecar]}) == (RESOURCES[0], 1)


def test_a_pod_with_a_sidecar_ends_with_it() -> None:
    def ended(at: str) -> dict[str, Any]:
        return {"state": {"terminated": {"finishedAt": at}}}

    item = {
        "metadata": {
            "name": "a",
            "namespace": "vision",
            "uid": "u",
            "creationTimestamp": "2026-11-28T09:00:00Z",
        },
        "spec": {"nodeName": "n", "containers": [container(1)]},
        "status": {
            "phase": "Succeeded",
            "initContainerStatuses": [ended("2026-11-28T09:00:10Z"), ended("2026-11-28T09:30:04Z")],
            "containerStatuses": [ended("2026-11-28T09:30:00Z")],
        },
    }

    assert parse.pod(item).ended_at == datetime(2026, 11, 28, 9, 30, 4, tzinfo=UTC)
