"""The status that KServe writes for an InferenceService in Standard mode: pure."""

from collections.abc import Sequence

from slipway_localcluster.controllers import conditions
from slipway_localcluster.controllers.serving_runtimes import (
    CONTAINER,
    INITIALIZER,
    InvalidPredictor,
    Runtime,
)
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.objects import timestamp

_INGRESS_DOMAIN = "example.com"


def report_stopped(service: JsonObject) -> JsonObject:
    """Return the status under the annotation `serving.kserve.io/stop: "true"`."""
    reason = {"reason": "Stopped", "message": "The InferenceService is stopped."}
    desired = [
        conditions.condition(kind, conditions.FALSE, **reason)
        for kind in ("IngressReady", "PredictorReady", "Ready")
    ]
    desired.append(conditions.condition("Stopped", conditions.TRUE))
    return _base(service) | {"conditions": conditions.merge(_conditions(service), desired)}


def invalid(service: JsonObject, error: InvalidPredictor) -> JsonObject:
    """Return the status of a predictor that no pod can serve."""
    reason = {"reason": error.reason, "message": str(error)}
    desired = [
        conditions.condition("PredictorReady", conditions.FALSE, **reason),
        conditions.condition("Ready", conditions.FALSE, **reason),
        conditions.condition("Stopped", conditions.FALSE),
    ]
    status = _base(service)
    status["conditions"] = conditions.merge(_conditions(service), desired)
    failure = {"location": "", "reason": error.reason, "message": str(error)}
    status["modelStatus"] = {
        "transitionStatus": "InvalidSpec",
        "states": {"activeModelState": "", "targetModelState": "Pending"},
        "lastFailureInfo": _timed(service, failure),
    }
    return status


def report_served(
    service: JsonObject, runtime: Runtime, deployment: JsonObject, pods: Sequence[JsonObject]
) -> JsonObject:
    """Return the status of a service from its Deployment and its pods, newest pod first."""
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    predictor = _predictor_condition(deployment)
    is_ready = predictor["status"] == conditions.TRUE
    ready = {**predictor, "type": "Ready"}
    desired = [
        conditions.condition("IngressReady", conditions.TRUE),
        predictor,
        ready,
        conditions.condition("Stopped", conditions.FALSE),
    ]
    local_url = f"http://{name}-predictor.{namespace}.svc.cluster.local"
    status = _base(service)
    status["conditions"] = conditions.merge(_conditions(service), desired)
    status["url"] = f"http://{name}-{namespace}.{_INGRESS_DOMAIN}"
    status["address"] = {"url": local_url}
    status["components"] = {"predictor": {"url": local_url}}
    key = "clusterServingRuntimeName" if runtime.is_cluster_wide else "servingRuntimeName"
    status[key] = runtime.name
    status["modelStatus"] = _model_status(
        service, pods, is_ready=is_ready, is_scaled_to_zero=deployment["spec"].get("replicas") == 0
    )
    return status


def _base(service: JsonObject) -> JsonObject:
    return {
        "deploymentMode": "Standard",
        "observedGeneration": service["metadata"]["generation"],
    }


def _conditions(service: JsonObject) -> list[JsonObject] | None:
    return (service.get("status") or {}).get("conditions")


def _predictor_condition(deployment: JsonObject) -> JsonObject:
    """Return the Deployment's availability as a condition. A rollout that is stuck or not observed yet is not ready."""
    observed = (deployment.get("status") or {}).get("observedGeneration")
    available = conditions.find(deployment, "Available")
    if available is None or observed != deployment["metadata"]["generation"]:
        return conditions.condition("PredictorReady", conditions.UNKNOWN)
    progressing = conditions.find(deployment, "Progressing")
    source = available
    if progressing is not None and progressing["status"] == conditions.FALSE:
        source = progressing
    if source["status"] == conditions.TRUE:
        return conditions.condition("PredictorReady", conditions.TRUE)
    reason = {"reason": source.get("reason", ""), "message": source.get("message", "")}
    return conditions.condition("PredictorReady", conditions.FALSE, **reason)


def _model_status(
    service: JsonObject, pods: Sequence[JsonObject], *, is_ready: bool, is_scaled_to_zero: bool
) -> JsonObject:
    """Return the model status, which is stricter than KServe's: that is UpToDate as soon as the Deployment is
    available.
    """
    before = ((service.get("status") or {}).get("modelStatus") or {}).get("states") or {}
    active = before.get("activeModelState", "")
    failure = failure_of(pods[0]) if pods else None
    if failure is not None:
        return {
            "transitionStatus": "BlockedByFailedLoad",
            "states": {"activeModelState": active, "targetModelState": "FailedToLoad"},
            "copies": {"failedCopies": _failed(pods), "totalCopies": len(pods)},
            "lastFailureInfo": _timed(service, failure),
        }
    if is_ready and pods and all(conditions.is_true(pod, "Ready") for pod in pods):
        return {
            "transitionStatus": "UpToDate",
            "states": {"activeModelState": "Loaded", "targetModelState": "Loaded"},
            "copies": {"failedCopies": 0, "totalCopies": len(pods)},
        }
    if is_scaled_to_zero and not pods:
        # Healthy, with no model loaded.
        states = {"activeModelState": "", "targetModelState": "Pending"}
        return {"transitionStatus": "UpToDate", "states": states, "copies": _copies(pods)}
    target = "Loading" if pods and _is_loading(pods[0]) else "Pending"
    states = {"activeModelState": active, "targetModelState": target}
    return {"transitionStatus": "InProgress", "states": states, "copies": _copies(pods)}


def _copies(pods: Sequence[JsonObject]) -> JsonObject:
    return {"failedCopies": 0, "totalCopies": len(pods)}


def _failed(pods: Sequence[JsonObject]) -> int:
    return sum(failure_of(pod) is not None for pod in pods)


def failure_of(pod: JsonObject) -> JsonObject | None:
    """Return why a pod's models did not load, from its containers' termination messages."""
    for name, state, last in _containers(pod):
        waiting = (state.get("waiting") or {}).get("reason")
        ended = state.get("terminated") or {}
        if waiting == "CrashLoopBackOff":
            ended = last.get("terminated") or {}
        elif ended.get("reason") != "Error":
            continue
        return {
            "location": pod["metadata"]["name"],
            "reason": "ModelLoadFailed",
            "message": ended.get("message") or f"The container {name} failed.",
            "exitCode": ended.get("exitCode", 1),
        }
    return None


def _is_loading(pod: JsonObject) -> bool:
    return any("running" in state for _, state, _ in _containers(pod))


def _containers(pod: JsonObject) -> list[tuple[str, JsonObject, JsonObject]]:
    status = pod.get("status") or {}
    listed = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    return [
        (item["name"], item.get("state") or {}, item.get("lastState") or {})
        for item in listed
        if item["name"] in (INITIALIZER, CONTAINER)
    ]


def _timed(service: JsonObject, failure: JsonObject) -> JsonObject:
    """Add the time to a failure. An unchanged failure keeps its time."""
    status = service.get("status") or {}
    before = (status.get("modelStatus") or {}).get("lastFailureInfo") or {}
    if {**before, "time": None} == {**failure, "time": None}:
        return {**failure, "time": before.get("time")}
    return {**failure, "time": timestamp()}
