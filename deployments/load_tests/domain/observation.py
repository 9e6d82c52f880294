"""The state of a load test, from its Job, its pod and the events of the Job.

What the cluster does to the pod is never a verdict about the model. The result comes from a pod that ran the
model's code, so it is read as untrusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from deployments.load_tests.domain.job import CONTAINER
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.results import LoadOutcome, LoadTest

Json = Mapping[str, Any]

_MAX_LENGTH: Final = 600
_MAX_MESSAGE: Final = 4096
_MAX_NUMBER: Final = 10**9
# The kubelet's, of an image or a container that it cannot start as it is.
_NEVER_STARTS: Final = (
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
# Of Triton's messages: what the image, the GPU or the driver of this cluster lacks.
_NO_VERDICT: Final = (
    ("the image has no such backend", r"libtriton_\w+\.so|unable to find backend"),
    (
        "it does not fit the GPU or the TensorRT of this image",
        r"incompatible device|[Cc]ompute [Cc]apability|[Vv]ersion tag does not match"
        r"|serialization version|serializationVersion",
    ),
    (
        "the pod has no usable GPU",
        r"no CUDA-capable device|CUDA driver version|number of CUDA devices|invalid device ordinal"
        r"|unsupported gpu|no GPUs",
    ),
)
_NOT_OF_THE_CLUSTER: Final = (
    LoadOutcome.ANSWERED,
    LoadOutcome.NO_RUNTIME,
    LoadOutcome.NO_REQUEST,
    LoadOutcome.LATE,
)
_NO_MEMORY: Final = re.compile(
    r"out of memory|OutOfMemory|bad_alloc|Cannot allocate memory", re.IGNORECASE
)


def outcome_of(
    job: Json, pods: Sequence[Json], events: Sequence[Json], *, minutes: int, last: str
) -> LoadTest | str:
    """Return the result, or what is being waited for. `last` is what was waited for before."""
    for pod in pods:
        if end := _end_of(pod):
            return end
    if reason := _failure_of(job):
        if reason == "DeadlineExceeded":
            return _late(minutes, last)
        return _not_tried(f"its pod is gone ({last or 'no reason given'}); try again")
    if pods:
        return _waits_for(pods[0])
    return _creation(events)


def report_gone(last: str) -> LoadTest:
    """Return the result of a test whose Job somebody removed."""
    return _not_tried(f"its Job was removed before it ended ({last or 'no reason given'})")


def report_refused(message: str) -> LoadTest:
    return _not_tried(f"the cluster refuses it: {_short(message)}")


def unreachable(message: str) -> LoadTest:
    return _not_tried(f"the cluster could not be reached in time: {_short(message)}")


def _not_tried(reason: str) -> LoadTest:
    return LoadTest(LoadOutcome.NO_RUNTIME, reason)


def _late(minutes: int, last: str) -> LoadTest:
    waited = f"; last seen: {last}" if last else ""
    return _not_tried(f"it did not end within {minutes} minutes{waited}")


def _end_of(pod: Json) -> LoadTest | None:
    status = pod.get("status") or {}
    for item in status.get("initContainerStatuses") or ():
        ended = _terminated(item)
        if ended and ended.get("exitCode"):
            message = _short(ended.get("message") or ended.get("reason") or "no reason given")
            return _not_tried(f"the files did not arrive ({item.get('name')}): {message}")
    for item in status.get("containerStatuses") or ():
        ended = _terminated(item)
        if item.get("name") == CONTAINER and ended:
            return _end_of_container(ended, status)
    reasons = list(_start_failures(status))
    if reasons:
        return _not_tried(reasons[0])
    if status.get("phase") == "Failed":
        return _ended_by_cluster(status)
    return None


def _end_of_container(ended: Json, status: Json) -> LoadTest:
    if result := parse(str(ended.get("message") or "")):
        return result
    if ended.get("reason") == "OOMKilled":
        return LoadTest(LoadOutcome.TOO_LARGE, "it needed more memory than the pod's limit")
    if status.get("reason"):
        return _ended_by_cluster(status)
    code = ended.get("exitCode")
    detail = f"its program ended with {code}: {_short(str(ended.get('message') or ''))}"
    return _not_tried(detail.rstrip(": "))


def _ended_by_cluster(status: Json) -> LoadTest:
    reason = f"{status.get('reason') or 'no reason given'}: {status.get('message') or ''}"
    return _not_tried(f"the cluster ended its pod ({_short(reason).rstrip(': ')}); try again")


def _start_failures(status: Json) -> Iterator[str]:
    for field in ("initContainerStatuses", "containerStatuses"):
        for item in status.get(field) or ():
            waiting = (item.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in _NEVER_STARTS:
                yield f"its pod does not start: {_describe(waiting)}"


def _waits_for(pod: Json) -> str:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"no node takes its pod yet: {_short(condition.get('message') or '')}"
    for item in status.get("initContainerStatuses") or ():
        if not _terminated(item):
            return f"downloading the files{_waiting(item)}"
    for item in status.get("containerStatuses") or ():
        if "running" in (item.get("state") or {}):
            return "loading the model in Triton"
        return f"starting the image{_waiting(item)}"
    return ""


def _waiting(item: Json) -> str:
    waiting = (item.get("state") or {}).get("waiting") or {}
    is_failure = str(waiting.get("reason", "")).startswith("Err")
    return f" ({_describe(waiting)})" if is_failure else ""


def _describe(waiting: Json) -> str:
    return _short(f"{waiting.get('reason')}: {waiting.get('message') or ''}").rstrip(": ")


def _creation(events: Sequence[Json]) -> LoadTest | str:
    """Say why no pod was created. A quota may be free again; what the namespace forbids stays forbidden."""
    failed = [event for event in events if event.get("reason") == "FailedCreate"]
    if not failed:
        return ""
    last = max(failed, key=lambda event: str(event.get("lastTimestamp") or ""))
    message = _short(str(last.get("message") or ""))
    if "forbidden" in message and "exceeded quota" not in message:
        return _not_tried(f"the cluster refuses its pod: {message}")
    return f"the cluster does not create its pod yet: {message}"


def _failure_of(job: Json) -> str:
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            return str(condition.get("reason") or "Failed")
    return ""


def _terminated(item: Json) -> Json | None:
    terminated: Json | None = (item.get("state") or {}).get("terminated")
    return terminated


def parse(message: str) -> LoadTest | None:
    """Parse the message of a pod. None for anything but a result."""
    if len(message) > _MAX_MESSAGE:
        return None
    try:
        result = results.from_json(json.loads(message))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
    numbers = (result.load_seconds, result.memory_mib, result.first_ms, result.warm_ms)
    if result.cluster or not all(map(_is_measure, (*numbers, result.gpu_memory_mib))):
        return None
    if not isinstance(result.detail, str) or not isinstance(result.sample_answers, str):
        return None
    return _judged(result)


def _is_measure(value: object) -> bool:
    """Return whether the value is a number in range. NaN is none, because no comparison with it is true."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _MAX_NUMBER


def _judged(result: LoadTest) -> LoadTest:
    """Withhold the verdict where this cluster, not the model, is the cause. A failure for lack of memory
    becomes TOO_LARGE.
    """
    if result.outcome in _NOT_OF_THE_CLUSTER:
        return result
    if _NO_MEMORY.search(result.detail):
        return replace(result, outcome=LoadOutcome.TOO_LARGE)
    for reason, pattern in _NO_VERDICT:
        if re.search(pattern, result.detail):
            return _not_tried(f"{reason}: {_short(result.detail)}")
    return result


def _short(text: str) -> str:
    return " ".join(str(text).split())[:_MAX_LENGTH]
