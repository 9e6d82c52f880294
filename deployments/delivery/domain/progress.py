"""How far a revision's workload has come, from the cluster's objects, in plain words.

Ready means that as many pods as asked for are ready and that the owner says so too. The owner alone
is not believed: with maxUnavailable 1 a Deployment of one replica is "available" without any pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.delivery.domain import diagnosis
from deployments.delivery.domain.diagnosis import Diagnosis
from deployments.manifests.domain import digest_check

Json = Mapping[str, Any]

# In the order in which a workload passes them.
STAGES: Final = ("missing", "accepted", "scheduled", "download", "load", "ready")
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True, slots=True)
class Progress:
    """`is_failing`: it will not come up by waiting alone."""

    stage: str
    reason: str = ""
    message: str = ""
    is_failing: bool = False

    @property
    def is_ready(self) -> bool:
        return self.stage == "ready"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ready": self.is_ready}


MISSING: Final = Progress("missing", "missing", "the workload is not on the cluster")


def of_workload(*, workload: Json | None, pods: Sequence[Json], wanted_pods: int) -> Progress:
    if workload is None:
        return MISSING
    alive = [pod for pod in pods if "deletionTimestamp" not in pod.get("metadata", {})]
    seen = [of_pod(pod) for pod in alive]
    ready = sum(one.is_ready for one in seen)
    owner = _of_owner(workload)
    if owner.is_ready and ready >= wanted_pods:
        return Progress("ready")
    waiting = [one for one in seen if not one.is_ready]
    if not waiting:
        if ready < wanted_pods and (owner.is_ready or not owner.message):
            words = f"{ready} of {wanted_pods} replicas are ready"
            return Progress("accepted", "replicas missing", words)
        return owner if not owner.is_ready else Progress("load", "starting", "almost ready")
    told = min(waiting, key=lambda one: (not one.is_failing, STAGES.index(one.stage)))
    if not told.is_failing and owner.is_failing:
        return owner
    return told


def of_pod(pod: Json) -> Progress:
    status = pod.get("status", {})
    conditions = _conditions(status)
    if conditions.get("Ready", {}).get("status") == "True":
        return Progress("ready")
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        found = diagnosis.of_scheduling(scheduled.get("message", "no node fits"))
        return Progress("accepted", found.reason, found.words)
    if status.get("phase") == "Failed":
        return _as_progress("scheduled", diagnosis.of_lost_pod(*_why(status)))
    told = [_of_init(container) for container in status.get("initContainerStatuses", [])]
    told += [_of_main(container) for container in status.get("containerStatuses", [])]
    return next((one for one in told if one is not None), None) or _of_start(pod)


def _why(status: Json) -> tuple[str, str]:
    """The condition that says who ended the pod, else what the pod itself says."""
    disrupted = _conditions(status).get("DisruptionTarget", {})
    reason = disrupted.get("reason") or status.get("reason") or ""
    return reason, status.get("message") or disrupted.get("message") or ""


def _as_progress(stage: str, found: Diagnosis) -> Progress:
    return Progress(stage, found.reason, found.words, is_failing=found.is_terminal)


def _of_start(pod: Json) -> Progress:
    if not pod.get("spec", {}).get("nodeName"):
        return Progress("accepted", "waiting for the scheduler", "waiting for the scheduler")
    return Progress("scheduled", "starting", f"starting on {pod['spec']['nodeName']}")


def event_words(stage: str, workload: str) -> str:
    """What the timeline says when a workload reaches the stage."""
    return {
        "accepted": f"the cluster accepted {workload}",
        "scheduled": f"{workload} got a node",
        "download": f"{workload} downloads the model",
        "load": f"{workload} loads the model",
        "ready": f"{workload} is ready",
        "missing": f"{workload} is gone from the cluster",
    }[stage]


def _of_init(container: Json) -> Progress | None:
    """The model download, or the comparison with its record; None when it is done."""
    state = container.get("state", {})
    ended = state.get("terminated") or {}
    if ended and ended.get("exitCode") == 0:
        return None
    is_check = container.get("name") == digest_check.NAME
    waiting = state.get("waiting") or {}
    failed = ended or _last_end(container)
    if waiting.get("reason") in (*_IMAGE, *_CONFIG):
        return _waiting_words("scheduled", waiting)
    if failed:
        return _failed_check(failed) if is_check else _failed_download(failed)
    if "running" in state and is_check:
        words = "compares the downloaded files with what was approved"
        return Progress("download", "compares digests", words)
    if "running" in state:
        return Progress("download", "downloading the model", "downloading the model from S3")
    return Progress("scheduled", "starting", "the download is about to start")


def _failed_download(failed: Json) -> Progress:
    words = failed.get("message") or f"exit code {failed.get('exitCode')}"
    known = diagnosis.of_text(words)
    if known is not None:
        return _as_progress("download", known)
    message = f"the model cannot be downloaded: {words.strip()}"
    return Progress("download", "storage error", message, is_failing=True)


def _failed_check(failed: Json) -> Progress:
    """Of the known cases this one alone: a missing command is no missing image."""
    words = failed.get("message") or f"exit code {failed.get('exitCode')}"
    known = diagnosis.of_text(words)
    if known is not None and known.reason == diagnosis.NOT_AS_APPROVED:
        return _as_progress("download", known)
    message = f"the model cannot be compared with its record: {words.strip()}"
    return Progress("download", "digests not compared", message, is_failing=True)


def _of_main(container: Json) -> Progress | None:
    state = container.get("state", {})
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") in (*_IMAGE, *_CONFIG):
        return _waiting_words("scheduled", waiting)
    last = ended or _last_end(container)
    if waiting.get("reason") == "CrashLoopBackOff" or ended:
        return _crash_words(last, waiting)
    if "running" in state:
        if container.get("restartCount", 0) and last:
            if last.get("reason") == "OOMKilled":
                return _crash_words(last, waiting)
            return Progress("load", "restarted", f"restarting after: {_words_of_end(last)}")
        return Progress("load", "loading the model", "loading the model")
    return None


def _waiting_words(stage: str, waiting: Json) -> Progress:
    reason = waiting["reason"]
    words = waiting.get("message") or reason
    what = "the image cannot be pulled" if reason in _IMAGE else "the container cannot start"
    known = diagnosis.of_text(words)
    if known is not None:
        return Progress(stage, known.reason, f"{what}: {known.words}", is_failing=known.is_terminal)
    return Progress(stage, what, f"{what}: {words}", is_failing=True)


def _crash_words(last: Json, waiting: Json) -> Progress:
    if last.get("reason") == "OOMKilled":
        words = "out of memory: raise memory in the serving spec"
        return Progress("load", "out of memory", words, is_failing=True)
    words = _words_of_end(last) if last else waiting.get("message", "it exits at once")
    known = diagnosis.of_text(words)
    if known is not None:
        return _as_progress("load", known)
    return Progress(
        "load", "load failed", f"the container exits while loading: {words}", is_failing=True
    )


def _words_of_end(last: Json) -> str:
    return (last.get("message") or "").strip() or f"exit code {last.get('exitCode', 'unknown')}"


def _last_end(container: Json) -> Json:
    return (container.get("lastState") or {}).get("terminated") or {}


def _of_owner(workload: Json) -> Progress:
    by_kind = {"InferenceService": _of_kserve, "Deployment": _of_deployment}
    return by_kind.get(workload.get("kind", ""), _of_conditions)(workload)


def _of_conditions(workload: Json) -> Progress:
    """LLMInferenceService and LeaderWorkerSet: one condition says it all."""
    conditions = _conditions(workload.get("status", {}))
    told = conditions.get("Ready") or conditions.get("Available") or {}
    if told.get("status") == "True":
        return Progress("ready")
    words = told.get("message") or "the cluster is preparing it"
    return Progress("accepted", told.get("reason") or "preparing", words)


def _of_kserve(service: Json) -> Progress:
    """PredictorReady, not Ready: Ready waits for KServe's own ingress, which nothing here uses."""
    status = service.get("status", {})
    conditions = _conditions(status)
    model = status.get("modelStatus", {})
    failure = model.get("lastFailureInfo", {})
    transition = model.get("transitionStatus")
    if transition in ("BlockedByFailedLoad", "InvalidSpec"):
        reason = failure.get("reason", transition)
        words = failure.get("message") or reason
        known = diagnosis.of_text(words)
        reason, words = (known.reason, known.words) if known else (reason, words)
        stage = "load" if transition == "BlockedByFailedLoad" else "accepted"
        return Progress(stage, reason, words, is_failing=True)
    predictor = conditions.get("PredictorReady", {})
    if predictor.get("status") == "True" and transition in ("UpToDate", None):
        return Progress("ready")
    words = predictor.get("message") or "KServe is preparing it"
    return Progress("accepted", predictor.get("reason") or "preparing", words)


def _of_deployment(deployment: Json) -> Progress:
    status = deployment.get("status", {})
    conditions = _conditions(status)
    failure = conditions.get("ReplicaFailure", {})
    if failure.get("status") == "True":
        words = failure.get("message", "pods cannot be created")
        known = diagnosis.of_text(words)
        if known is not None:
            return _as_progress("accepted", known)
        return Progress("accepted", failure.get("reason", "refused"), words, is_failing=True)
    generation = deployment.get("metadata", {}).get("generation", 0)
    if status.get("observedGeneration", -1) < generation:
        return Progress("accepted", "preparing", "the cluster is preparing it")
    if conditions.get("Available", {}).get("status") == "True":
        return Progress("ready")
    return Progress("accepted", "preparing", conditions.get("Available", {}).get("message", ""))


def _conditions(status: Json) -> dict[str, Json]:
    found: Iterable[Json] = status.get("conditions") or ()
    return {condition["type"]: condition for condition in found}
