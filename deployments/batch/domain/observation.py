"""The state of a batch job on its cluster, from its Job and pods. Messages of pods are untrusted text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.batch.domain import worker_store
from deployments.batch.domain.job import CONTAINER
from deployments.serving.domain.queue_state import QueueState

Json = Mapping[str, Any]
_MAX_LENGTH: Final = 600
# As many in a row end a job that drains a queue, which KEDA would start for ever.
_FAILURES: Final = 6
_REASONS: Final = {
    "DeadlineExceeded": "It was not done by its deadline.",
    "PodFailurePolicy": "A worker cannot do it.",
    "FailedIndexes": "A worker failed too often.",
    "BackoffLimitExceeded": "Its workers failed too often.",
}


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """The observed state of a Job. `failure` is set when it has failed, `has_ended` also when it is complete.

    `queue` is set while Kueue has not admitted it, or has evicted it.
    """

    detail: str
    has_ended: bool = False
    failure: str = ""
    queue: QueueState | None = None


@dataclass(frozen=True, slots=True)
class ObservedQueue:
    """The observed state of the workers of a queue. `is_empty` means that KEDA finds no message and no worker runs.

    `failure` is set when the workers cannot do their work, `queue` while some of them wait for Kueue.
    """

    detail: str
    is_empty: bool = False
    has_workers: bool = False
    failure: str = ""
    queue: QueueState | None = None


def observe_queue(scaled_job: Json, pods: Sequence[Json]) -> ObservedQueue:
    has_live = any(map(is_live, pods))
    if failure := _failure_of(pods):
        return ObservedQueue("", has_workers=has_live, failure=failure)
    conditions = {
        str(item.get("type")): item
        for item in (scaled_job.get("status") or {}).get("conditions") or ()
    }
    ready, active = conditions.get("Ready", {}), conditions.get("Active", {})
    parts = [text] if (text := _describe(pods, ())) else []
    is_empty = active.get("status") == "False" and not has_live
    if ready.get("status") == "False":
        parts.append(f"KEDA cannot read the queue: {short(str(ready.get('message') or ''))}")
        is_empty = False
    elif is_empty:
        parts.append("no messages are waiting, so no workers run")
    return ObservedQueue("; ".join(parts), is_empty=is_empty, has_workers=has_live)


def is_live(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Pending", "Running")


def _failure_of(pods: Sequence[Json]) -> str:
    """Return why the workers cannot go on: the last one says that it never can, or the last few all failed by
    themselves. Empty otherwise.
    """
    ended = sorted(
        (str(last.get("finishedAt") or ""), last.get("exitCode") or 0, _message(last))
        for pod in pods
        if not is_live(pod) and not count_reclaimed([pod]) and (last := _last_end(pod))
    )
    never = [message for _, code, message in ended[-1:] if code == worker_store.NEVER]
    if never:
        return f"A worker cannot do it. {never[0]}"
    newest = ended[-_FAILURES:]
    if len(newest) == _FAILURES and all(code for _, code, _ in newest):
        return f"Its workers failed too often. {newest[-1][2]}"
    return ""


def _last_end(pod: Json) -> Json | None:
    ends = _terminated(pod)
    return next((end for end in ends if end.get("exitCode")), ends[-1] if ends else None)


def observe(job: Json, pods: Sequence[Json], events: Sequence[Json]) -> ObservedJob:
    ended = _condition(job)
    if ended is None:
        return ObservedJob(_describe(pods, events))
    if ended.get("type") == "Complete":
        return ObservedJob("", has_ended=True)
    reason = str(ended.get("reason") or "")
    sentence = _REASONS.get(reason) or f"The Job failed: {short(reason)}."
    message = " ".join(part for part in (sentence, _last_message(pods)) if part)
    return ObservedJob("", has_ended=True, failure=message)


def count_reclaimed(pods: Sequence[Json]) -> int:
    """Count the pods that the cluster ended: their node was reclaimed or drained, or is gone."""
    return sum(
        item.get("type") == "DisruptionTarget" and item.get("status") == "True"
        for pod in pods
        for item in (pod.get("status") or {}).get("conditions") or ()
    )


def short(text: str) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= _MAX_LENGTH else plain[: _MAX_LENGTH - 1] + "…"


def _condition(job: Json) -> Json | None:
    conditions: Sequence[Json] = (job.get("status") or {}).get("conditions") or ()
    for item in conditions:
        if item.get("type") in ("Complete", "Failed") and item.get("status") == "True":
            return item
    return None


def _describe(pods: Sequence[Json], events: Sequence[Json]) -> str:
    phases = [str((pod.get("status") or {}).get("phase") or "") for pod in pods]
    live = [pod for pod, phase in zip(pods, phases, strict=True) if phase in ("Pending", "Running")]
    parts = []
    running = sum(_is_scoring(pod) for pod in live)
    if running:
        parts.append(f"{running} {'worker' if running == 1 else 'workers'} running")
    waiting = [reason for pod in live if not _is_scoring(pod) and (reason := _waits_for(pod))]
    if waiting:
        parts.append(f"{len(waiting)} starting: {waiting[0]}")
    if count := count_reclaimed(pods):
        parts.append(f"{count} reclaimed and replaced")
    if message := _last_message(pods):
        parts.append(f"last failure: {message}")
    if not pods:
        parts += [
            short(str(event.get("message") or ""))
            for event in events
            if event.get("reason") == "FailedCreate"
        ][:1]
    return "; ".join(parts)


def _is_scoring(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("running" in (item.get("state") or {}) for item in statuses)


def _waits_for(pod: Json) -> str:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"no node takes the pod yet: {short(str(condition.get('message') or ''))}"
    for field, what in (
        ("initContainerStatuses", "downloading the model"),
        ("containerStatuses", "starting the image"),
    ):
        for item in status.get(field) or ():
            waiting = (item.get("state") or {}).get("waiting") or {}
            if str(waiting.get("reason", "")).startswith(("Err", "Image", "Create", "Invalid")):
                return short(f"{waiting.get('reason')}: {waiting.get('message') or ''}").rstrip(
                    ": "
                )
            if not (item.get("state") or {}).get("terminated"):
                return what
    return "waiting for a node"


def _last_message(pods: Sequence[Json]) -> str:
    """Return the message of the worker that last failed by itself. Empty if none did."""
    ends = [
        (str(ended.get("finishedAt") or ""), message)
        for pod in pods
        if not count_reclaimed([pod])
        for ended in _terminated(pod)
        if ended.get("exitCode") and (message := _message(ended))
    ]
    return max(ends)[1] if ends else ""


def _terminated(pod: Json) -> list[Json]:
    status = pod.get("status") or {}
    items = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [end for item in items if (end := (item.get("state") or {}).get("terminated"))]


def _message(ended: Json) -> str:
    text = str(ended.get("message") or "")
    try:
        detail = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        detail = text or f"{CONTAINER} ended: {ended.get('reason') or ended.get('exitCode')}"
    return short(str(detail))
