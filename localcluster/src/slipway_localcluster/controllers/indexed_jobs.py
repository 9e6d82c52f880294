"""Indexed Jobs: one pod for each index until it succeeds, with a limit of failures for each index.

Left out: the wait between two tries, maxFailedIndexes, success policies and suspension. A pod that was deleted
is replaced and, other than in Kubernetes, not counted as a failure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slipway_localcluster.errors import JsonObject

INDEX = "batch.kubernetes.io/job-completion-index"
_VARIABLE = "JOB_COMPLETION_INDEX"
FAILED_BY_POLICY = "PodFailurePolicy"
_FAILED_INDEXES = ("FailedIndexes", "Job has failed indexes")
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an indexed Job. `missing` are indexes that need a pod now; `failure` is a reason and its
    message.
    """

    succeeded: frozenset[int]
    failed: frozenset[int]
    active: int
    missing: tuple[int, ...]
    failure: tuple[str, str] | None


def is_indexed(job: JsonObject) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def progress_of(job: JsonObject, pods: Sequence[JsonObject]) -> Progress:
    spec = job["spec"]
    completions = int(spec.get("completions") or 0)
    limit = spec.get("backoffLimitPerIndex")
    by_index: dict[int, list[JsonObject]] = defaultdict(list)
    for pod in pods:
        by_index[index_of(pod)].append(pod)
    failures, failure = _failures(spec, pods)
    succeeded = {index for index, own in by_index.items() if "Succeeded" in map(_phase, own)}
    failed = {
        index
        for index, count in failures.items()
        if limit is not None and count > int(limit) and index not in succeeded
    }
    # A pod that still ends keeps its index: what it does must not be done twice.
    occupied = {index for index, own in by_index.items() if any(map(_is_alive, own))}
    open_indexes = [i for i in range(completions) if i not in succeeded | failed | occupied]
    room = max(0, int(spec.get("parallelism", 1)) - len(occupied))
    if failure is None and failed and len(succeeded | failed) == completions:
        failure = _FAILED_INDEXES
    missing = tuple(open_indexes[:room]) if failure is None else ()
    return Progress(frozenset(succeeded), frozenset(failed), len(occupied), missing, failure)


def index_of(pod: JsonObject) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def template_of(job: JsonObject, index: int) -> JsonObject:
    """Return the Job's pod spec with the index in the environment of each container."""
    spec = dict(job["spec"]["template"]["spec"])
    path = f"metadata.annotations['{INDEX}']"
    variable = {"name": _VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    for field in ("initContainers", "containers"):
        if field in spec:
            spec[field] = [
                {**item, "env": [*(item.get("env") or ()), variable]} for item in spec[field]
            ]
    return {**spec, "hostname": f"{job['metadata']['name']}-{index}"}


def status_of(progress: Progress) -> JsonObject:
    status: JsonObject = {
        "succeeded": len(progress.succeeded),
        "completedIndexes": ranges(progress.succeeded),
    }
    if progress.failed:
        status["failedIndexes"] = ranges(progress.failed)
    return status


def ranges(indexes: frozenset[int]) -> str:
    """Format indexes in Kubernetes notation: "0-2,4", for example."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join("-".join(map(str, part)) for part in parts)


def _failures(
    spec: JsonObject, pods: Sequence[JsonObject]
) -> tuple[Mapping[int, int], tuple[str, str] | None]:
    """Return how often each index failed, and the failure of the whole Job by its policy."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    counts: Counter[int] = Counter()
    for pod in pods:
        if _phase(pod) != "Failed":
            continue
        number, action = _action(rules, pod)
        if action == "FailJob":
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            message = f"Pod {name} matched FailJob rule at index {number}"
            return counts, (FAILED_BY_POLICY, message)
        if action != "Ignore":
            counts[index_of(pod)] += 1
    return counts, None


def _action(rules: Sequence[JsonObject], pod: JsonObject) -> tuple[int, str]:
    """Return the number and action of the first rule that matches the pod. (-1, "Count") if none does."""
    for number, rule in enumerate(rules):
        if any(_matches(rule, pod)):
            return number, str(rule["action"])
    return -1, "Count"


def _matches(rule: JsonObject, pod: JsonObject) -> Iterator[bool]:
    status = pod.get("status") or {}
    conditions = {(item["type"], item["status"]) for item in status.get("conditions") or ()}
    for pattern in rule.get("onPodConditions") or ():
        yield (pattern["type"], pattern.get("status", "True")) in conditions
    if codes := rule.get("onExitCodes"):
        for item in status.get("containerStatuses") or ():
            code = ((item.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if codes.get("containerName") in (None, item["name"]) and code != 0:
                yield (code in codes["values"]) is (codes["operator"] == "In")


def _phase(pod: JsonObject) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _is_alive(pod: JsonObject) -> bool:
    return _phase(pod) not in _FINISHED
