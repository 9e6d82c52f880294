"""The steps of a server's start, from its log; the lines are those of vLLM 0.11 and SGLang."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.delivery.domain import language_start, progress
from deployments.delivery.services import start_logs
from deployments.delivery.services.observe import DeploymentObservation
from deployments.models import Deployment
from tests.deployments.world import World

LINES = [
    "(EngineCore_DP0 pid=212) INFO 10-06 12:00:03 [gpu_model_runner.py:2338] Starting to load model /mnt/models...",
    "Loading safetensors checkpoint shards:   0% Completed | 0/1 [00:00<?, ?it/s]",
    "(EngineCore_DP0 pid=212) INFO 10-06 12:00:09 [gpu_model_runner.py:2370] Model loading took 4.2117 GiB and 5.31 seconds",
    "(EngineCore_DP0 pid=212) INFO 10-06 12:00:31 [kv_cache_utils.py:1087] GPU KV cache size: 49,152 tokens",
    "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|█████     | 5/11",
    "(EngineCore_DP0 pid=212) INFO 10-06 12:00:40 [gpu_model_runner.py:3480] Graph capturing finished in 8 secs, took 0.31 GiB",
]
# Of 0.5.23; of 0.5.10 where it writes otherwise.
SGLANG = [
    "[2026-04-06 12:00:03 TP0] Load weight begin. avail mem=21.89 GB",
    "[2026-04-06 12:00:09 TP0] Load weight end. elapsed=5.31 s, type=Qwen3ForCausalLM, avail mem=17.61 GB, mem usage=4.21 GB.",
    "[2026-04-06 12:00:10 TP0] Memory pool end. avail mem=3.46 GB",
    "[2026-04-06 12:00:10 TP0] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=3.40 GB",
    "[2026-04-06 12:00:18 TP0] Capture target decode CUDA graph end. bs=[1, 2, 4, 8], elapsed=8.12 s, mem usage=0.31 GB, avail mem=3.09 GB.",
    "[2026-04-06 12:00:18 TP0] max_total_num_tokens=49152, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=2048, context_len=40960, available_gpu_mem=3.09 GB",
]
OLD_CAPTURE = "[2026-04-06 12:00:18 TP0] Capture cuda graph end. Time elapsed: 8.12 s. mem usage=0.31 GB. avail mem=3.09 GB."
SGLANG_CAPTURED = "CUDA graphs were captured in 8.12 s; starting the server"
POD = "detector-r1-0"
LOADING = "loading the model"


@pytest.mark.parametrize(
    ("lines", "described"),
    [
        (0, ""),
        (1, "loading the weights"),
        (2, "loading the weights"),
        (3, "weights of 4.2117 GiB are loaded; measuring GPU memory"),
        (5, "KV cache for 49,152 tokens; capturing CUDA graphs"),
        (6, "CUDA graphs were captured in 8 s; starting the server"),
    ],
)
def test_the_last_step_of_the_log_is_described(lines: int, described: str) -> None:
    assert language_start.describe("\n".join(["INFO vLLM API server", *LINES[:lines]])) == described


@pytest.mark.parametrize(
    ("lines", "described"),
    [
        (0, ""),
        (1, "loading the weights"),
        (2, "weights of 4.21 GiB are loaded; allocating the KV cache"),
        (4, "the KV cache is allocated; capturing CUDA graphs"),
        (5, "CUDA graphs were captured in 8.12 s; starting the server"),
        (6, "KV cache for 49,152 tokens; warming up"),
    ],
)
def test_the_steps_of_sglang_are_described(lines: int, described: str) -> None:
    log = "\n".join(["server_args=ServerArgs(max_total_num_tokens=None)", *SGLANG[:lines]])

    assert language_start.describe(log) == described


def test_the_capture_of_older_releases_of_sglang_is_described() -> None:
    log = "\n".join([*SGLANG[:4], OLD_CAPTURE])

    assert language_start.describe(log) == SGLANG_CAPTURED


def language_model(world: World) -> Deployment:
    deployment = world.serving()
    assert deployment.stable_revision is not None
    deployment.stable_revision.spec |= {"engine": "kserve-vllm"}
    return deployment


def shown(world: World, deployment: Deployment, **status: Any) -> tuple[str, DeploymentObservation]:
    container = {"name": "server", "state": {"running": {}}, **status}
    pod = {
        "metadata": {"name": POD, "namespace": "vision"},
        "spec": {"nodeName": "n"},
        "status": {"containerStatuses": [container]},
    }
    before = DeploymentObservation(workloads={}, pods={1: [pod]}, route=None)
    after = start_logs.explain(deployment, before)
    assert container["state"] == {"running": {}}, "what the cluster reported is not changed"
    return progress.derive_pod_progress(after.pods[1][0]).message, after


def test_a_loading_pod_shows_the_step_of_its_log(world: World) -> None:
    deployment = language_model(world)
    world.cluster.logs[POD] = "\n".join(LINES[:4])

    assert shown(world, deployment)[0] == "KV cache for 49,152 tokens; capturing CUDA graphs"


def test_a_log_without_a_step_leaves_what_kubernetes_says(world: World) -> None:
    deployment = language_model(world)
    world.cluster.logs[POD] = "INFO starting"

    assert shown(world, deployment)[0] == LOADING


def test_no_log_is_read_of_a_ready_pod_or_of_triton(world: World) -> None:
    world.cluster.logs[POD] = "\n".join(LINES)
    deployment = language_model(world)
    _, ready = shown(world, deployment, ready=True)
    assert deployment.stable_revision is not None
    deployment.stable_revision.spec |= {"engine": "triton"}

    message, _ = shown(world, deployment)

    assert message == LOADING
    assert "message" not in ready.pods[1][0]["status"]["containerStatuses"][0]["state"]["running"]
