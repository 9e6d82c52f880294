"""What a Job, its pod and its events say about a load test: a verdict only where Triton gave one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.load_tests.domain import observation
from deployments.registry.domain.load_tests.results import LoadOutcome, LoadTest

ANSWERED = {
    "outcome": "answered",
    "load_seconds": 2.5,
    "memory_mib": 700,
    "gpu_memory_mib": 450,
    "first_ms": 3.5,
    "warm_ms": 0.5,
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2]}],
}


def failed(reason: str) -> dict[str, Any]:
    condition = {"type": "Failed", "status": "True", "reason": reason}
    return {"status": {"conditions": [condition]}}


def ended(text: str, code: int = 0, **status: Any) -> dict[str, Any]:
    terminated = {"exitCode": code, "message": text}
    terminated["reason"] = status.pop("ended_as", "Completed")
    return {
        "status": {
            **status,
            "containerStatuses": [{"name": "load-test", "state": {"terminated": terminated}}],
        }
    }


def waiting(field: str, name: str, reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"status": {"phase": "Pending", field: [{"name": name, "state": state}]}}


def seen(
    pod: dict[str, Any] | None = None,
    job: dict[str, Any] | None = None,
    events: list[dict[str, Any]] | None = None,
    last: str = "",
) -> LoadTest | str:
    pods = [] if pod is None else [pod]
    return observation.outcome_of(job or {}, pods, events or [], minutes=30, last=last)


def test_the_result_is_the_message_of_the_pod() -> None:
    assert seen(ended(json.dumps(ANSWERED))) == LoadTest(
        LoadOutcome.ANSWERED,
        load_seconds=2.5,
        memory_mib=700,
        gpu_memory_mib=450,
        first_ms=3.5,
        warm_ms=0.5,
        outputs=({"name": "y", "datatype": "FP32", "shape": [1, 2]},),
    )


@pytest.mark.parametrize(
    ("pod", "job", "reason"),
    [
        (
            {"status": {"phase": "Failed", "reason": "Evicted", "message": "low on disk"}},
            failed("BackoffLimitExceeded"),
            "the cluster ended its pod (Evicted: low on disk); try again",
        ),
        (
            ended("", 137, phase="Failed", reason="Preempting", message="for another pod"),
            None,
            "the cluster ended its pod (Preempting: for another pod); try again",
        ),
        (
            None,
            failed("DeadlineExceeded"),
            "it did not end within 30 minutes; last seen: no node takes its pod yet",
        ),
        (
            None,
            failed("BackoffLimitExceeded"),
            "its pod is gone (no node takes its pod yet); try again",
        ),
        (
            waiting("containerStatuses", "load-test", "ImagePullBackOff", "no such tag"),
            None,
            "its pod does not start: ImagePullBackOff: no such tag",
        ),
        (
            {
                "status": {
                    "initContainerStatuses": [
                        {
                            "name": "digest-check",
                            "state": {"terminated": {"exitCode": 1, "message": "1/a: FAILED"}},
                        }
                    ]
                }
            },
            None,
            "the files did not arrive (digest-check): 1/a: FAILED",
        ),
        (ended("no json", 1), None, "its program ended with 1: no json"),
    ],
    ids=["evicted", "preempted", "late", "gone", "image", "download", "program"],
)
def test_what_the_cluster_does_is_no_verdict(
    pod: dict[str, Any] | None, job: dict[str, Any] | None, reason: str
) -> None:
    last = "no node takes its pod yet"

    assert seen(pod, job, last=last) == LoadTest(LoadOutcome.NO_RUNTIME, reason)


def test_a_pod_that_may_still_start_is_waited_for() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes available"}
    quota = {"reason": "FailedCreate", "message": 'pods "x" is forbidden: exceeded quota: slipway'}

    assert seen() == ""
    assert seen(events=[quota]) == f"the cluster does not create its pod yet: {quota['message']}"
    assert (
        seen({"status": {"phase": "Pending", "conditions": [condition]}})
        == "no node takes its pod yet: 0/3 nodes available"
    )
    assert (
        seen(waiting("initContainerStatuses", "storage-initializer", "PodInitializing"))
        == "downloading the files"
    )
    assert (
        seen(waiting("containerStatuses", "load-test", "ErrImagePull", "429"))
        == "starting the image (ErrImagePull: 429)"
    )


def test_what_the_namespace_forbids_is_not_waited_for() -> None:
    message = 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'

    assert seen(events=[{"reason": "FailedCreate", "message": message}]) == LoadTest(
        LoadOutcome.NO_RUNTIME, f"the cluster refuses its pod: {message}"
    )


def test_a_pod_out_of_memory_is_no_verdict() -> None:
    assert seen(ended("", 137, ended_as="OOMKilled")) == LoadTest(
        LoadOutcome.TOO_LARGE, "it needed more memory than the pod's limit"
    )


@pytest.mark.parametrize(
    ("detail", "outcome"),
    [
        ("failed to load 'm': no scale", LoadOutcome.NOT_LOADED),
        ("unable to find '/opt/tritonserver/backends/x/libtriton_x.so'", LoadOutcome.NO_RUNTIME),
        ("engine plan file is generated on an incompatible device", LoadOutcome.NO_RUNTIME),
        ("CUDA driver version is insufficient for CUDA runtime", LoadOutcome.NO_RUNTIME),
        ("CUDA out of memory. Tried to allocate", LoadOutcome.TOO_LARGE),
    ],
)
def test_what_the_place_lacks_is_no_verdict(detail: str, outcome: LoadOutcome) -> None:
    result = seen(ended(json.dumps({"outcome": "not_loaded", "detail": detail})))

    assert isinstance(result, LoadTest)
    assert result.outcome is outcome
    assert detail in result.detail


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[]",
        "null",
        "[" * 2000,
        json.dumps({"outcome": "passed"}),
        json.dumps({**ANSWERED, "memory_mib": -1}),
        json.dumps({**ANSWERED, "warm_ms": float("nan")}),
        json.dumps({**ANSWERED, "load_seconds": "1"}),
        json.dumps({**ANSWERED, "load_seconds": True}),
        json.dumps({**ANSWERED, "cluster": "another"}),
        json.dumps({**ANSWERED, "detail": ["x"]}),
        json.dumps({**ANSWERED, "outputs": 3}),
        json.dumps({**ANSWERED, "is_ready": True}),
        json.dumps({**ANSWERED, "detail": "x" * 5000}),
    ],
    ids=str.__len__,
)
def test_anything_but_a_result_is_refused(message: str) -> None:
    assert observation.parse(message) is None
