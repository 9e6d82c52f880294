"""Language models over several nodes under KServe's own controllers: pods, GPUs, and what vLLM is started
with. The scripts of KServe's presets run in a shell here; in place of vLLM a program prints its arguments.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from deployments.delivery.domain import progress
from deployments.manifests.domain.metadata import WORKLOAD_LABEL, ManifestContext
from deployments.spec.domain import serving_spec
from tests.cluster.kubectl import Kubectl
from tests.cluster.llm_world import World, language_model, until

_GPU: Final = "nvidia.com/gpu"
_PROGRAMS: Final = {
    "vllm": '[ "$1" = --version ] && { echo "vllm 0.19.0"; exit; }\nprintf "%s\\n" "$@"\n',
    "getent": 'echo "10.0.0.7 leader"\n',
}
_READY_POD: Final = {
    "metadata": {},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.fixture
def world(cluster_id: int, context: ManifestContext, admin: Kubectl) -> World:
    return World(cluster_id, context, admin)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, script in _PROGRAMS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(0o755)
    return tmp_path


def _arguments(pod: Mapping[str, Any], programs: Path, **environment: str) -> list[str]:
    """What the pod's script starts vLLM with."""
    (container,) = [one for one in pod["spec"]["containers"] if one["name"] == "main"]
    stated = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    done = subprocess.run(
        [*container["command"], *container.get("args", [])],
        env={**stated, **environment, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = done.stdout.splitlines()
    return lines[lines.index("serve") :]


def _value_of(arguments: list[str], name: str) -> str:
    """The last one counts, written as one argument or as two."""
    joined = [one.partition("=")[2] for one in arguments if one.startswith(f"{name}=")]
    following = [after for before, after in itertools.pairwise(arguments) if before == name]
    (value,) = {*joined, *following}
    return value


def test_copies_on_several_nodes_are_a_leader_worker_set(
    world: World, programs: Path, journey: Callable[[str], None]
) -> None:
    world.push(language_model(1, tensor_parallel=2, data_parallel=4, nodes=3))

    made = world.wait_for("leaderworkersets", "detector-r1-kserve-mn")
    group = made["spec"]["leaderWorkerTemplate"]
    leader, worker = group["leaderTemplate"], group["workerTemplate"]

    assert (made["spec"]["replicas"], group["size"]) == (1, 3)
    for name, pod in (("leader", leader), ("worker", worker)):
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["limits"][_GPU] == "8"
        assert container["securityContext"]["capabilities"] == {
            "add": ["NET_BIND_SERVICE"],
            "drop": ["ALL"],
        }
        assert pod["metadata"]["labels"][WORKLOAD_LABEL] == "detector-r1"
        assert pod["spec"]["serviceAccountName"] == "slipway-models"
        assert [one["name"] for one in pod["spec"]["initContainers"]] == ["storage-initializer"]
        world.admit_pod(name, pod)
    of_leader = _arguments(leader, programs, LWS_LEADER_ADDRESS="leader")
    of_worker = _arguments(worker, programs, LWS_LEADER_ADDRESS="leader", LWS_WORKER_INDEX="2")
    for arguments in (of_leader, of_worker):
        assert arguments[:2] == ["serve", "/mnt/models"]
        assert _value_of(arguments, "--tensor-parallel-size") == "2"
        assert _value_of(arguments, "--data-parallel-size") == "12"
        assert _value_of(arguments, "--data-parallel-size-local") == "4"
        assert _value_of(arguments, "--data-parallel-address") == "10.0.0.7"
        assert "--enable-prefix-caching" in arguments
    assert _value_of(of_leader, "--data-parallel-start-rank") == "0"
    assert _value_of(of_worker, "--data-parallel-start-rank") == "8"
    assert ("--headless" in of_leader, "--headless" in of_worker) == (False, True)
    journey("llm-inference-service: three nodes are a LeaderWorkerSet of eight GPUs each")


def test_a_replica_over_several_nodes_is_ready_with_all_its_pods(world: World) -> None:
    world.push(language_model(1, data_parallel=2, nodes=2))
    world.wait_for("leaderworkersets", "detector-r1-kserve-mn")

    def observed(pods: int) -> progress.WorkloadProgress:
        return progress.derive_workload_progress(
            workload=world.service("detector-r1"), pods=[_READY_POD] * pods, desired_pods=2
        )

    assert not observed(pods=2).is_ready
    world.report_groups_as_available("detector-r1-kserve-mn")
    until(lambda: observed(pods=2).is_ready, lambda: world.service("detector-r1")["status"])
    assert observed(pods=1).message == "1 of 2 replicas are ready"


def test_copies_on_one_node_are_started_with_the_gpus_of_the_pod(
    world: World, programs: Path
) -> None:
    world.push(language_model(1, tensor_parallel=2, data_parallel=4))

    pod = world.wait_for("deployments", "detector-r1-kserve")["spec"]["template"]
    arguments = _arguments(pod, programs)

    assert pod["spec"]["containers"][0]["resources"]["limits"][_GPU] == "8"
    assert _value_of(arguments, "--tensor-parallel-size") == "2"
    assert _value_of(arguments, "--data-parallel-size") == "4"


def test_layers_over_several_nodes_are_a_head_and_its_workers(
    world: World, journey: Callable[[str], None]
) -> None:
    served = language_model(
        1,
        serving_spec.KSERVE_VLLM,
        artifact="pvc://weights/model",
        tensor_parallel=2,
        nodes=3,
    )
    world.push(served)

    head = world.wait_for("deployments", "detector-r1-predictor")["spec"]
    workers = world.wait_for("deployments", "detector-r1-predictor-worker")["spec"]
    pods = head["replicas"] + workers["replicas"]
    gpus = [
        int(one["template"]["spec"]["containers"][0]["resources"]["limits"][_GPU])
        for one in (head, workers)
    ]

    assert pods == served.spec.nodes == 3
    assert gpus == [2, 2]
    assert pods * gpus[0] == served.spec.most_gpus
    for one in (head, workers):
        assert one["template"]["metadata"]["labels"][WORKLOAD_LABEL] == "detector-r1"
    environment = {
        one["name"]: one.get("value") for one in head["template"]["spec"]["containers"][0]["env"]
    }
    assert environment["PIPELINE_PARALLEL_SIZE"] == "3"
    assert environment["TENSOR_PARALLEL_SIZE"] == "2"
    journey("kserve-vllm: three nodes are a head and two workers of two GPUs each")
