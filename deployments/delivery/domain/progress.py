"""Derive a workload's stage from its own status and that of its pods.

Ready means that the desired number of pods is ready and that the owner reports ready as well. The
owner alone is not enough: with maxUnavailable 1 a Deployment of one replica is "available" without
any pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.delivery.domain import diagnosis
from deployments.delivery.domain.diagnosis import Diagnosis
from deployments.manifests.domain.model_files import digest_check
from deployments.serving.domain.queue_state import QUEUED
from fleet.clusters.domain import queues

Json = Mapping[str, Any]

# In the order in which a workload passes them.
STAGES: Final = ("missing", "accepted", "scheduled", "download", "load", "ready")
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True, slots=True)
class WorkloadProgress:
    """The progress of a pod or workload. `is_failing` means that waiting alone will not make it ready."""

    stage: str
    reason: str = ""
    message: str = ""
    is_failing: bool = False

    @property
    def is_ready(self) -> bool:
        return self.stage == "ready"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ready": self.is_ready}


MISSING: Final = WorkloadProgress("missing", "missing", "the workload is not on the cluster")


def derive_workload_progress(
    *,
    workload: Json | None,
    pods: Sequence[Json],
    desired_pods: int,
    controlled: Sequence[Json] = (),
) -> WorkloadProgress:
    """Derive the progress of a workload. `controlled` are the Deployments that its controller made.

    A quota or policy that refuses their pods is reported there only.
    """
    if workload is None:
        return MISSING
    live_pods = [pod for pod in pods if "deletionTimestamp" not in pod.get("metadata", {})]
    by_pod = [derive_pod_progress(pod) for pod in live_pods]
    ready = sum(pod.is_ready for pod in by_pod)
    owner = _of_owner(workload, controlled if len(live_pods) < desired_pods else ())
    if owner.is_ready and ready >= desired_pods:
        return WorkloadProgress("ready")
    waiting = [pod for pod in by_pod if not pod.is_ready]
    if not waiting:
        if ready < desired_pods and (owner.is_ready or not owner.message):
            message = f"{ready} of {desired_pods} replicas are ready"
            return WorkloadProgress("accepted", "replicas missing", message)
        return owner if not owner.is_ready else WorkloadProgress("load", "starting", "almost ready")
    slowest = min(waiting, key=lambda pod: (not pod.is_failing, STAGES.index(pod.stage)))
    if not slowest.is_failing and owner.is_failing:
        return owner
    return slowest


def derive_pod_progress(pod: Json) -> WorkloadProgress:
    status = pod.get("status", {})
    conditions = _conditions(status)
    if conditions.get("Ready", {}).get("status") == "True":
        return WorkloadProgress("ready")
    if queues.is_gated(pod):
        return WorkloadProgress("accepted", QUEUED, "waits for admission by Kueue")
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        cause = diagnosis.diagnose_scheduling(scheduled.get("message", "no node fits"))
        return WorkloadProgress("accepted", cause.reason, cause.message)
    if status.get("phase") == "Failed":
        return _as_progress("scheduled", diagnosis.diagnose_lost_pod(*_termination_cause(status)))
    by_container = [_of_init(container) for container in status.get("initContainerStatuses", [])]
    by_container += [_of_main(container) for container in status.get("containerStatuses", [])]
    first = next((progress for progress in by_container if progress is not None), None)
    return first or _of_start(pod)


def _termination_cause(status: Json) -> tuple[str, str]:
    """Return reason and message of the disruption condition, else of the pod's own status."""
    disrupted = _conditions(status).get("DisruptionTarget", {})
    reason = disrupted.get("reason") or status.get("reason") or ""
    return reason, status.get("message") or disrupted.get("message") or ""


def _as_progress(stage: str, cause: Diagnosis) -> WorkloadProgress:
    return WorkloadProgress(stage, cause.reason, cause.message, is_failing=cause.is_terminal)


def _of_start(pod: Json) -> WorkloadProgress:
    if not pod.get("spec", {}).get("nodeName"):
        return WorkloadProgress(
            "accepted", "waiting for the scheduler", "waiting for the scheduler"
        )
    return WorkloadProgress("scheduled", "starting", f"starting on {pod['spec']['nodeName']}")


def describe_stage(stage: str, workload: str) -> str:
    """Return the timeline's message when a workload reaches the stage."""
    return {
        "accepted": f"the cluster accepted {workload}",
        "scheduled": f"{workload} got a node",
        "download": f"{workload} downloads the model",
        "load": f"{workload} loads the model",
        "ready": f"{workload} is ready",
        "missing": f"{workload} is no longer on the cluster",
    }[stage]


def _of_init(container: Json) -> WorkloadProgress | None:
    """Derive the progress of the model download, or of the comparison with its record. None once the container
    succeeded.
    """
    state = container.get("state", {})
    ended = state.get("terminated") or {}
    if ended and ended.get("exitCode") == 0:
        return None
    is_check = container.get("name") == digest_check.NAME
    waiting = state.get("waiting") or {}
    failed = ended or _last_end(container)
    if waiting.get("reason") in (*_IMAGE, *_CONFIG):
        return _of_waiting("scheduled", waiting)
    if failed:
        return _failed_check(failed) if is_check else _failed_download(failed)
    if "running" in state and is_check:
        message = "compares the downloaded files with what was approved"
        return WorkloadProgress("download", "compares digests", message)
    if "running" in state:
        return WorkloadProgress(
            "download", "downloading the model", "downloading the model from S3"
        )
    return WorkloadProgress("scheduled", "starting", "the download is about to start")


def _failed_download(failed: Json) -> WorkloadProgress:
    message = failed.get("message") or f"exit code {failed.get('exitCode')}"
    known = diagnosis.diagnose_text(message)
    if known is not None:
        return _as_progress("download", known)
    message = f"the model cannot be downloaded: {message.strip()}"
    return WorkloadProgress("download", "storage error", message, is_failing=True)


def _failed_check(failed: Json) -> WorkloadProgress:
    """Explain a failed digest check. Only a digest mismatch is a known case here: a missing command is not a
    missing image.
    """
    message = failed.get("message") or f"exit code {failed.get('exitCode')}"
    known = diagnosis.diagnose_text(message)
    if known is not None and known.reason == diagnosis.NOT_AS_APPROVED:
        return _as_progress("download", known)
    message = f"the model cannot be compared with its record: {message.strip()}"
    return WorkloadProgress("download", "digests not compared", message, is_failing=True)


def _of_main(container: Json) -> WorkloadProgress | None:
    state = container.get("state", {})
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") in (*_IMAGE, *_CONFIG):
        return _of_waiting("scheduled", waiting)
    last = ended or _last_end(container)
    if waiting.get("reason") == "CrashLoopBackOff" or ended:
        return _of_crash(last, waiting)
    if "running" in state:
        if container.get("restartCount", 0) and last:
            if last.get("reason") == "OOMKilled":
                return _of_crash(last, waiting)
            return WorkloadProgress("load", "restarted", f"restarting after: {_exit_message(last)}")
        # The message is the portal's own, from the log of a language model.
        message = (state["running"] or {}).get("message") or "loading the model"
        return WorkloadProgress("load", "loading the model", message)
    return None


def _of_waiting(stage: str, waiting: Json) -> WorkloadProgress:
    reason = waiting["reason"]
    message = waiting.get("message") or reason
    problem = "the image cannot be pulled" if reason in _IMAGE else "the container cannot start"
    known = diagnosis.diagnose_text(message)
    if known is not None:
        message = f"{problem}: {known.message}"
        return WorkloadProgress(stage, known.reason, message, is_failing=known.is_terminal)
    return WorkloadProgress(stage, problem, f"{problem}: {message}", is_failing=True)


def _of_crash(last: Json, waiting: Json) -> WorkloadProgress:
    if last.get("reason") == "OOMKilled":
        message = "out of memory: raise memory in the serving spec"
        return WorkloadProgress("load", "out of memory", message, is_failing=True)
    message = _exit_message(last) if last else waiting.get("message", "it exits immediately")
    known = diagnosis.diagnose_text(message)
    if known is not None:
        return _as_progress("load", known)
    return WorkloadProgress(
        "load", "load failed", f"the container exits while loading: {message}", is_failing=True
    )


def _exit_message(last: Json) -> str:
    return (last.get("message") or "").strip() or f"exit code {last.get('exitCode', 'unknown')}"


def _last_end(container: Json) -> Json:
    return (container.get("lastState") or {}).get("terminated") or {}


def _of_owner(workload: Json, controlled: Sequence[Json]) -> WorkloadProgress:
    denial = next((denial for item in controlled if (denial := _denial(item))), None)
    if denial is not None:
        return denial
    by_kind = {"InferenceService": _of_kserve, "Deployment": _of_deployment}
    return by_kind.get(workload.get("kind", ""), _of_llm_service)(workload)


def _of_llm_service(service: Json) -> WorkloadProgress:
    """Derive the progress of an LLMInferenceService without its condition Ready.

    Ready also waits until a gateway accepts the InferencePool, which it does when a route names it: the portal's
    route does so once the revision is ready.
    """
    conditions = _conditions(service.get("status", {}))
    picker = conditions.get("SchedulerWorkloadReady", {"status": "True"})
    workload = conditions.get("WorkloadsReady", {})
    waiting = [one for one in (workload, picker) if one.get("status") != "True"]
    if not waiting:
        return WorkloadProgress("ready")
    # Presets that cannot be combined leave the others as they were.
    presets = conditions.get("PresetsCombined", {})
    cause = presets if presets.get("status") == "False" else waiting[0]
    message = cause.get("message") or "KServe is preparing it"
    return WorkloadProgress("accepted", cause.get("reason") or "preparing", message)


def _of_kserve(service: Json) -> WorkloadProgress:
    """Derive the progress of an InferenceService from PredictorReady.

    Ready also waits for KServe's own ingress, which nothing here uses, and so do `modelStatus.transitionStatus` and
    its return from an earlier failure (kserve v0.20.0, pkg/apis/serving/v1beta1/inference_service_status.go,
    PropagateModelStatus).
    """
    status = service.get("status", {})
    predictor = _conditions(status).get("PredictorReady", {})
    if predictor.get("status") == "True" and _is_latest_revision(status):
        return WorkloadProgress("ready")
    model = status.get("modelStatus", {})
    failure = model.get("lastFailureInfo", {})
    transition = model.get("transitionStatus")
    if transition in ("BlockedByFailedLoad", "InvalidSpec"):
        reason = failure.get("reason", transition)
        message = failure.get("message") or reason
        known = diagnosis.diagnose_text(message)
        reason, message = (known.reason, known.message) if known else (reason, message)
        stage = "load" if transition == "BlockedByFailedLoad" else "accepted"
        return WorkloadProgress(stage, reason, message, is_failing=True)
    message = predictor.get("message") or "KServe is preparing it"
    return WorkloadProgress("accepted", predictor.get("reason") or "preparing", message)


def _is_latest_revision(status: Json) -> bool:
    """Whether the latest revision is the ready one. In Knative mode the predictor is ready while an older revision
    serves.
    """
    component = (status.get("components") or {}).get("predictor") or {}
    return bool(component.get("latestReadyRevision") == component.get("latestCreatedRevision"))


def _of_deployment(deployment: Json) -> WorkloadProgress:
    denial = _denial(deployment)
    if denial is not None:
        return denial
    status = deployment.get("status", {})
    conditions = _conditions(status)
    generation = deployment.get("metadata", {}).get("generation", 0)
    if status.get("observedGeneration", -1) < generation:
        return WorkloadProgress("accepted", "preparing", "the cluster is preparing it")
    if conditions.get("Available", {}).get("status") == "True":
        return WorkloadProgress("ready")
    return WorkloadProgress(
        "accepted", "preparing", conditions.get("Available", {}).get("message", "")
    )


def _denial(deployment: Json) -> WorkloadProgress | None:
    """Return why the API server refuses the Deployment's pods: a quota, a policy or a webhook. None if it does not."""
    failure = _conditions(deployment.get("status", {})).get("ReplicaFailure", {})
    if failure.get("status") != "True":
        return None
    message = failure.get("message", "pods cannot be created")
    known = diagnosis.diagnose_text(message)
    if known is not None:
        return _as_progress("accepted", known)
    return WorkloadProgress("accepted", failure.get("reason", "refused"), message, is_failing=True)


def _conditions(status: Json) -> dict[str, Json]:
    conditions: Iterable[Json] = status.get("conditions") or ()
    return {condition["type"]: condition for condition in conditions}
