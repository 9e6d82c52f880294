"""InferenceServices in Standard mode: a Deployment and a Service `{name}-predictor`.

Left out: transformers, explainers, `spec.canary`, Knative mode, multi-node, and autoscaling: the
replica count is `minReplicas`, as it would be without load.
"""

from slipway_localcluster.controllers import kserve_status, serving_runtimes
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import (
    controller_reference,
    is_deleted,
    owner_uids,
    write_status,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.controllers.serving_runtimes import InvalidPredictor, Runtime
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import (
    CLUSTER_SERVING_RUNTIME,
    DEPLOYMENT,
    INFERENCE_SERVICE,
    POD,
    SERVICE,
    SERVING_RUNTIME,
    Kind,
)
from slipway_localcluster.store import Store

_MODE = "serving.kserve.io/deploymentMode"
_STOP = "serving.kserve.io/stop"
_AUTOSCALER = "serving.kserve.io/autoscalerClass"
_STANDARD_MODES = ("Standard", "RawDeployment")
_DEFAULT_PORT = 8080


class InferenceServices:
    """Maintains the Deployment and Service of each InferenceService, and its status."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = Recorder(store, "v1beta1Controllers")

    def reconcile(self) -> None:
        services = self._store.list(INFERENCE_SERVICE)
        reconcile_each((item for item in services if not is_deleted(item)), self._reconcile_service)

    def _reconcile_service(self, service: JsonObject) -> None:
        annotations = service["metadata"].get("annotations") or {}
        if annotations.get(_STOP) == "true":
            self._stop(service)
            status = kserve_status.report_stopped(service)
        else:
            try:
                status = self._serve(service, annotations.get(_MODE, "Standard"))
            except InvalidPredictor as error:
                status = kserve_status.invalid(service, error)
        self._record_failure(service, status)
        write_status(self._store, INFERENCE_SERVICE, service, status)

    def _serve(self, service: JsonObject, mode: str) -> JsonObject:
        predictor = service["spec"].get("predictor") or {}
        if mode not in _STANDARD_MODES or "model" not in predictor:
            raise InvalidPredictor(
                "InvalidPredictorSpec",
                "The local cluster serves predictors with a model, in Standard mode, only.",
            )
        namespace = service["metadata"]["namespace"]
        runtime = serving_runtimes.choose(
            predictor["model"],
            self._store.list(SERVING_RUNTIME, namespace),
            self._store.list(CLUSTER_SERVING_RUNTIME),
        )
        deployment = self._ensure(DEPLOYMENT, service, _deployment(service, runtime))
        spec = deployment["spec"]["template"]["spec"]
        self._ensure(SERVICE, service, _service(service, spec["containers"][0]))
        pods = self._store.list(POD, namespace, deployment["spec"]["selector"]["matchLabels"])
        living = [pod for pod in pods if not is_deleted(pod)]
        living.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]), reverse=True)
        return kserve_status.report_served(service, runtime, deployment, living)

    def _ensure(self, kind: Kind, service: JsonObject, desired: JsonObject) -> JsonObject:
        """Create, or reset the fields that follow from the service."""
        metadata = desired["metadata"]
        current = self._store.find(kind, metadata["namespace"], metadata["name"])
        if current is None:
            return self._store.create(kind, desired)
        if service["metadata"]["uid"] not in owner_uids(current):
            raise InvalidPredictor(
                "InvalidPredictorSpec",
                f"{kind.kind} {metadata['name']!r} exists and does not belong to this service.",
            )
        before = current["spec"].get("replicas")
        current["spec"] = desired["spec"]
        if before is not None and desired["spec"].get("replicas") is None:
            current["spec"]["replicas"] = before
        current["metadata"] |= {
            name: {**(current["metadata"].get(name) or {}), **metadata[name]}
            for name in ("labels", "annotations")
        }
        return self._store.replace(kind, current)

    def _stop(self, service: JsonObject) -> None:
        name, namespace = (
            f"{service['metadata']['name']}-predictor",
            service["metadata"]["namespace"],
        )
        for kind in (DEPLOYMENT, SERVICE):
            owned = self._store.find(kind, namespace, name)
            if owned is not None and service["metadata"]["uid"] in owner_uids(owned):
                self._store.delete(kind, namespace, name)

    def _record_failure(self, service: JsonObject, status: JsonObject) -> None:
        failure = (status.get("modelStatus") or {}).get("lastFailureInfo")
        before = ((service.get("status") or {}).get("modelStatus") or {}).get("lastFailureInfo")
        if failure and failure != before:
            self._events.warning(service, failure["reason"], failure["message"])


def _deployment(service: JsonObject, runtime: Runtime) -> JsonObject:
    metadata = _metadata(service)
    predictor = service["spec"]["predictor"]
    labels = {**(runtime.spec.get("labels") or {}), **metadata["labels"]}
    annotations = {**(runtime.spec.get("annotations") or {}), **metadata["annotations"]}
    rolling = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    spec = {
        "selector": {"matchLabels": {"app": labels["app"]}},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": serving_runtimes.pod_spec(service, runtime),
        },
        "strategy": predictor.get("deploymentStrategy") or rolling,
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
    }
    replicas = _replicas(service)
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": metadata, "spec": spec}


def _replicas(service: JsonObject) -> int | None:
    """Return the replicas that KServe sets. None if an external autoscaler sets them."""
    scaler = (service["metadata"].get("annotations") or {}).get(_AUTOSCALER, "hpa")
    if scaler == "external":
        return None
    minimum = int(service["spec"]["predictor"].get("minReplicas", 1))
    return max(minimum, 1) if scaler == "hpa" else minimum


def _service(service: JsonObject, container: JsonObject) -> JsonObject:
    """Return the Service. Port 80 targets the first declared port; the others keep their numbers."""
    declared = container.get("ports") or [{"containerPort": _DEFAULT_PORT}]
    first = declared[0]
    name = first.get("name") or f"{service['metadata']['name']}-predictor"
    ports = [{"name": name, "port": 80, "targetPort": first["containerPort"], "protocol": "TCP"}]
    for item in declared[1:]:
        port = item["containerPort"]
        entry = {
            "name": item.get("name") or f"port-{port}",
            "port": port,
            "targetPort": port,
            "protocol": "TCP",
        }
        if "grpc" in entry["name"] or "h2c" in entry["name"]:
            entry["appProtocol"] = "kubernetes.io/h2c"
        ports.append(entry)
    metadata = _metadata(service)
    selector = {"app": metadata["labels"]["app"]}
    return {
        "metadata": metadata,
        "spec": {"selector": selector, "ports": ports, "type": "ClusterIP"},
    }


def _metadata(service: JsonObject) -> JsonObject:
    own = service["metadata"]
    predictor = service["spec"]["predictor"]
    name = f"{own['name']}-predictor"
    return {
        "name": name,
        "namespace": own["namespace"],
        "labels": {
            **(own.get("labels") or {}),
            **(predictor.get("labels") or {}),
            "app": f"isvc.{name}",
            "component": "predictor",
            "serving.kserve.io/inferenceservice": own["name"],
        },
        "annotations": {**(own.get("annotations") or {}), **(predictor.get("annotations") or {})},
        "ownerReferences": [controller_reference(service)],
    }
