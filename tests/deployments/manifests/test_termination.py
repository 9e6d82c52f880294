"""How pods of each engine end: their grace, and how their server gets the time to finish what it runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.manifests.services import defaults
from deployments.spec.domain import engines
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.serving_policy import ServingPolicy
from portal.core.definitions import Rejected
from tests.deployments.manifest_strategies import CONTEXT, placed
from tests.deployments.world import World

_WEIGHTS = {"hugging_face_id": "org/model"}
_NODES = {"artifact": "oci://registry/m:1", "nodes": 2}
_KNATIVE = {"scaling": {"kind": "knative"}, "max_replicas": 2}
# Recorded of the portal that had no setting: the workload of a revision that was requested with it.
_BEFORE = {
    "kserve-triton": "35e626f5f2726594",
    "triton": "c63c5c3be270cfcc",
    "kserve-vllm": "81a8f6501d5c271b",
    "kserve-sglang": "270d2c885f9ada5a",
    "kserve-tensorrt-llm": "5f28a56b1f629056",
    "triton-vllm": "ec408119b85c75cb",
    "llm-inference-service": "ac21b3b5421ede9d",
    "kserve-vllm over nodes": "a83033019aba5d46",
    "llm-inference-service over nodes": "0ab0acaa54bf66e5",
    "kserve-vllm on Knative": "050c1de149e875aa",
}


def _spec(case: str, **fields: Any) -> ServingSpec:
    engine, _, variant = case.partition(" ")
    data: dict[str, Any] = {"engine": engine, "instance_type": "g5.xlarge", **fields}
    if engine in engines.LLM_ENGINES:
        data["llm"] = _WEIGHTS
    if variant == "over nodes":
        data["llm"] = _NODES if engine == "kserve-vllm" else {**_WEIGHTS, "nodes": 2}
    return ServingSpec.from_json(data | (_KNATIVE if variant == "on Knative" else {}))


def _workload(spec: ServingSpec, context: ManifestContext = CONTEXT) -> dict[str, Any]:
    served = ServedRevision(1, "detector", "detector:1", "ab" * 32, "s3://b/p/", spec, size_mib=100)
    workload, *_ = revision.build_own(context, served)
    return workload


def _pod(workload: Mapping[str, Any]) -> dict[str, Any]:
    spec = workload["spec"]
    pod: dict[str, Any] = spec.get("predictor") or spec["template"]
    return pod["spec"] if workload["kind"] == "Deployment" else pod


def _server(pod: Mapping[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = pod.get("model") or pod["containers"][0]
    return container


@pytest.mark.parametrize("case", _BEFORE)
def test_a_revision_of_before_the_setting_is_what_it_was(case: str) -> None:
    served = ServedRevision(
        1, "detector", "detector:1", "ab" * 32, "s3://b/p/", _spec(case), size_mib=100
    )

    workload = revision._workload(CONTEXT, served)

    text = json.dumps(workload, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == _BEFORE[case]


@pytest.mark.parametrize("case", [case for case in _BEFORE if not case.endswith("Knative")])
def test_the_grace_is_that_of_the_setting_by_engine(case: str) -> None:
    engine = case.partition(" ")[0]
    seconds = engines.default_grace_seconds(engine)

    grace = _pod(_workload(_spec(case, termination_grace_seconds=seconds)))[
        "terminationGracePeriodSeconds"
    ]

    assert grace == (600 if engine in engines.LLM_ENGINES else 35)


def test_knative_lets_a_request_take_as_long_as_the_grace() -> None:
    """It has no grace of its own: its pods get the time of a request."""
    limits = {
        seconds: _pod(_workload(_spec("kserve-vllm on Knative", termination_grace_seconds=seconds)))
        for seconds in (0, 60, 600, 900)
    }

    assert {key: pod.get("timeout") for key, pod in limits.items()} == {
        0: None,
        60: None,
        600: 600,
        900: 600,
    }
    assert all("terminationGracePeriodSeconds" not in pod for pod in limits.values())


@pytest.mark.parametrize(
    ("image", "has_drain"),
    [
        ("vllm/vllm-openai:v0.17.1", False),
        ("vllm/vllm-openai:v0.11.0", False),
        ("vllm/vllm-openai:v0.18.0", True),
        ("vllm/vllm-openai:v0.18.0rc1", False),
        ("vllm/vllm-openai:v0.32.0", True),
        ("vllm/vllm-openai:v1.0.0", True),
        ("vllm/vllm-openai:v0.20.1-cu130", True),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror/vllm-openai:v0.32.0", True),
        ("registry.example:5000/vllm-openai:v0.32.0@sha256:" + "ab" * 32, True),
        ("registry.example:5000/vllm-openai", False),
        ("vllm/vllm-openai:latest", False),
        ("vllm/vllm-openai:nightly", False),
        ("vllm/vllm-openai@sha256:" + "ab" * 32, False),
        ("registry.example/ours/llm:1.4.0", False),
        ("public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0-neuronx-py312", False),
    ],
)
def test_vllm_drains_by_itself_from_the_release_that_can(image: str, has_drain: bool) -> None:
    """Every other image is waited for before SIGTERM: an unknown argument would keep it from starting."""
    spec = _spec("kserve-vllm", termination_grace_seconds=600, image="")

    server = _server(_pod(_workload(spec, replace(CONTEXT, vllm_image=image))))

    command = server["lifecycle"]["preStop"]["exec"]["command"]
    assert ("--shutdown-timeout=585" in server["args"]) is has_drain
    assert (command == ["sleep", "5"]) is has_drain
    assert has_drain or (command[0], *command[3:]) == ("python3", "8080", "590", "5")


@pytest.mark.parametrize("case", ["kserve-triton", "triton", "triton-vllm"])
def test_triton_waits_as_long_as_its_pod(case: str) -> None:
    server = _server(_pod(_workload(_spec(case, termination_grace_seconds=120))))

    given_last = [arg for arg in server["args"] if arg.startswith("--exit-timeout-secs=")][-1]
    assert given_last == "--exit-timeout-secs=105"


def test_pods_on_further_nodes_end_after_the_one_that_answers() -> None:
    pod = _pod(_workload(_spec("kserve-vllm over nodes", termination_grace_seconds=600)))
    worker = pod["workerSpec"]

    assert worker["terminationGracePeriodSeconds"] == pod["terminationGracePeriodSeconds"] == 600
    (container,) = worker["containers"]
    assert "ray::" in container["lifecycle"]["preStop"]["exec"]["command"][2]
    assert (
        _workload(_spec("llm-inference-service over nodes", termination_grace_seconds=600))["spec"][
            "worker"
        ]["terminationGracePeriodSeconds"]
        == 600
    )


@given(drawn=placed())
def test_a_server_has_ended_before_its_pod_is_killed(
    drawn: tuple[ManifestContext, ServedRevision],
) -> None:
    context, served = drawn
    workload, *_ = revision.build_own(context, served)
    text = json.dumps(workload)
    pod = _pod(workload)
    # Knative's default is that of a request.
    grace = pod.get("terminationGracePeriodSeconds", pod.get("timeout", 300))

    # The last one counts.
    drains = [
        int(pieces[-1].partition('"')[0])
        for name in ("--shutdown-timeout=", "--exit-timeout-secs=")
        if len(pieces := text.split(name)) > 1
    ]
    assert all(5 <= seconds <= grace - 15 for seconds in drains)
    assert grace >= (35 if served.spec.termination_grace_seconds == 0 else 20)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("engine", "stated", "pinned"),
    [
        ("kserve-vllm", 0, 600),
        ("kserve-sglang", 0, 600),
        ("kserve-tensorrt-llm", 0, 600),
        ("triton-vllm", 0, 600),
        ("llm-inference-service", 0, 600),
        ("llm-inference-service", 30, 30),
        ("kserve-vllm", 1800, 1800),
        ("triton", 0, 0),
        ("triton", 90, 90),
    ],
)
def test_a_request_pins_the_default_and_keeps_what_is_stated(
    world: World, engine: str, stated: int, pinned: int
) -> None:
    spec = _spec(engine, termination_grace_seconds=stated)

    complete = defaults.complete_spec(spec, world.version1, ServingPolicy(), Capabilities())

    assert complete.termination_grace_seconds == pinned


@pytest.mark.parametrize("seconds", [-1, 1, 19, 3601])
def test_other_values_are_refused(seconds: int) -> None:
    with pytest.raises(Rejected) as refused:
        _spec("triton", termination_grace_seconds=seconds)

    assert list(refused.value.fields) == ["termination_grace_seconds"]


@contextmanager
def _metrics(answers: list[str]) -> Iterator[int]:
    """A server whose page of metrics has these lines, one after the other and then the last."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            line = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"# HELP vllm\n{line}\n".encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _hook(case: str) -> list[str]:
    pod = _pod(_workload(_spec(case, termination_grace_seconds=600)))
    container = pod["workerSpec"]["containers"][0] if "workerSpec" in pod else pod["model"]
    command: list[str] = container["lifecycle"]["preStop"]["exec"]["command"]
    return [sys.executable, *command[1:3]]


def _run(port: int, most: int) -> float:
    began = time.monotonic()
    ended = subprocess.run(
        [*_hook("kserve-vllm"), str(port), str(most), "0"], check=False, capture_output=True
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    return time.monotonic() - began


def test_the_hook_waits_until_nothing_runs() -> None:
    running = 'vllm:num_requests_running{model_name="a"} 1.0'
    waiting = 'vllm:num_requests_waiting{model_name="a"} 2.0'
    idle = 'vllm:num_requests_running{model_name="a"} 0.0'
    answers = [running, idle, waiting, idle]

    with _metrics(answers) as port:
        seconds = _run(port, 60)

    assert answers == [idle]
    assert 4 <= seconds < 30


def test_the_hook_gives_up_before_the_grace_ends() -> None:
    with _metrics(['vllm:num_requests_running{model_name="a"} 1.0']) as port:
        assert 2 <= _run(port, 2) < 20


def test_the_hook_does_not_wait_for_a_server_that_is_gone() -> None:
    with _metrics([""]) as port:
        pass

    assert _run(port, 60) < 20


def test_a_further_node_waits_for_rays_processes(tmp_path: Path) -> None:
    works = subprocess.Popen(["ray::RayWorkerWrapper", "3"], executable="/bin/sleep")
    idle = subprocess.Popen(["ray::IDLE", "60"], executable="/bin/sleep", env=os.environ)
    try:
        ended = subprocess.run([*_hook("kserve-vllm over nodes"), "60"], check=False)
        assert works.poll() == 0
        assert ended.returncode == 0
    finally:
        for process in (works, idle):
            process.kill()
            process.wait()
