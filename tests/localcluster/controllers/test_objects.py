"""Controllers that only read and write objects, without processes."""

from typing import Any

import pytest

from slipway_localcluster.controllers import container_states, kserve_status, nodes
from slipway_localcluster.controllers.container_states import ContainerState
from slipway_localcluster.controllers.deployments import Deployments
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.garbage import Garbage
from slipway_localcluster.controllers.kserve import InferenceServices
from slipway_localcluster.controllers.ownership import is_same_status
from slipway_localcluster.controllers.replica_sets import ReplicaSets
from slipway_localcluster.controllers.scheduler import Scheduler
from slipway_localcluster.kinds import (
    DEPLOYMENT,
    EVENT,
    INFERENCE_SERVICE,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    SERVING_RUNTIME,
)
from slipway_localcluster.store import Store
from tests.localcluster.controllers import manifests


@pytest.fixture
def ready(store: Store) -> Store:
    nodes.register(store, None)
    store.create(NAMESPACE, manifests.namespace())
    store.create(SERVING_RUNTIME, manifests.runtime())
    return store


def _reconcile(store: Store, count: int = 4) -> None:
    controllers = (Garbage, InferenceServices, Deployments, ReplicaSets, Scheduler)
    for _ in range(count):
        for controller in controllers:
            controller(store).reconcile()


def _deployment(store: Store) -> dict[str, Any]:
    return store.get(DEPLOYMENT, "vision", "m-predictor")


def test_a_service_becomes_a_bound_pod_with_merged_container(ready: Store) -> None:
    manifest = manifests.service("m", "s3://models/one/", args=["--log-verbose=1", "{{.Name}}"])
    ready.create(INFERENCE_SERVICE, manifest)

    _reconcile(ready)

    pod = ready.list(POD, "vision")[0]
    container = pod["spec"]["containers"][0]
    assert pod["spec"]["nodeName"] == "local-t4-1"
    assert container["args"][-3:] == ["--metrics-port=8002", "--log-verbose=1", "m"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert container["resources"]["requests"]["memory"] == "1Gi"
    assert pod["spec"]["initContainers"][0]["args"] == ["s3://models/one/", "/mnt/models"]
    assert pod["metadata"]["labels"]["serving.kserve.io/inferenceservice"] == "m"
    assert ready.get(SERVICE, "vision", "m-predictor")["spec"]["ports"][0]["targetPort"] == 8080
    status = ready.get(INFERENCE_SERVICE, "vision", "m")["status"]
    assert status["deploymentMode"] == "Standard"
    assert status["modelStatus"]["transitionStatus"] == "InProgress"


def test_nothing_is_written_once_nothing_changes(ready: Store) -> None:
    ready.create(INFERENCE_SERVICE, manifests.service("m", "s3://models/one/"))
    _reconcile(ready)
    before = ready.revision

    _reconcile(ready)

    assert ready.revision == before


def test_a_stopped_service_has_no_deployment(ready: Store) -> None:
    ready.create(INFERENCE_SERVICE, manifests.service("m", "s3://models/one/"))
    _reconcile(ready)
    service = ready.get(INFERENCE_SERVICE, "vision", "m")
    service["metadata"]["annotations"]["serving.kserve.io/stop"] = "true"
    ready.replace(INFERENCE_SERVICE, service)

    _reconcile(ready)

    assert ready.list(POD) == ready.list(DEPLOYMENT) == ready.list(REPLICA_SET) == []
    conditions = ready.get(INFERENCE_SERVICE, "vision", "m")["status"]["conditions"]
    assert {item["type"]: item["status"] for item in conditions} == {
        "IngressReady": "False",
        "PredictorReady": "False",
        "Ready": "False",
        "Stopped": "True",
    }


def test_a_new_template_creates_a_revision_and_scaling_does_not(ready: Store) -> None:
    ready.create(INFERENCE_SERVICE, manifests.service("m", "s3://models/one/"))
    _reconcile(ready)
    service = ready.get(INFERENCE_SERVICE, "vision", "m")
    service["spec"]["predictor"]["minReplicas"] = 2
    ready.replace(INFERENCE_SERVICE, service)
    _reconcile(ready)
    scaled = [item["spec"]["replicas"] for item in ready.list(REPLICA_SET)]

    service = ready.get(INFERENCE_SERVICE, "vision", "m")
    service["spec"]["predictor"]["model"]["storageUri"] = "s3://models/two/"
    ready.replace(INFERENCE_SERVICE, service)
    _reconcile(ready)

    revisions = {
        item["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        for item in ready.list(REPLICA_SET)
    }
    assert scaled == [2]
    assert revisions == {"1", "2"}
    assert _deployment(ready)["status"]["updatedReplicas"] >= 1


@pytest.mark.parametrize(
    ("spec", "model", "reason"),
    [
        ({"disabled": True}, {}, "RuntimeDisabled"),
        ({}, {"runtime": "other"}, "RuntimeNotRecognized"),
        ({}, {"modelFormat": {"name": "pmml"}}, "NoSupportingRuntime"),
        ({}, {"runtime": None, "modelFormat": {"name": "pmml"}}, "NoSupportingRuntime"),
        ({}, {"modelFormat": {"name": "onnx", "version": "9"}}, "NoSupportingRuntime"),
    ],
)
def test_a_predictor_without_a_fitting_runtime_is_invalid(
    store: Store, spec: dict[str, Any], model: dict[str, Any], reason: str
) -> None:
    store.create(NAMESPACE, manifests.namespace())
    store.create(SERVING_RUNTIME, manifests.runtime(**spec))
    store.create(INFERENCE_SERVICE, manifests.service("m", "s3://models/one/", **model))

    _reconcile(store)

    status = store.get(INFERENCE_SERVICE, "vision", "m")["status"]
    assert status["modelStatus"]["transitionStatus"] == "InvalidSpec"
    assert status["modelStatus"]["lastFailureInfo"]["reason"] == reason
    assert store.list(DEPLOYMENT) == []


def test_deleting_a_namespace_deletes_its_contents(ready: Store) -> None:
    ready.create(INFERENCE_SERVICE, manifests.service("m", "s3://models/one/"))
    ready.create(SECRET, {"metadata": {"name": "s", "namespace": "vision"}})
    ready.create(SECRET, {"metadata": {"name": "s", "namespace": "other"}})
    _reconcile(ready)

    ready.delete(NAMESPACE, None, "vision")
    for _ in range(2):
        Garbage(ready).reconcile()

    assert ready.find(NAMESPACE, None, "vision") is None
    assert ready.list(POD) == ready.list(INFERENCE_SERVICE) == []
    assert [item["metadata"]["namespace"] for item in ready.list(SECRET)] == ["other"]


def test_equal_events_are_counted(ready: Store) -> None:
    node = ready.list(NODE)[0]
    for _ in range(3):
        Recorder(ready, "test").warning(node, "Odd", "it is odd")

    events = ready.list(EVENT, "default")

    assert [(item["reason"], item["count"], item["type"]) for item in events] == [
        ("Odd", 3, "Warning")
    ]


def test_nulls_and_empty_objects_of_an_api_server_are_no_change_of_a_status() -> None:
    written = {"phase": "Running", "containerStatuses": [{"ready": True}]}
    stored = {
        "phase": "Running",
        "containerStatuses": [{"ready": True, "lastState": {}, "lastProbeTime": None}],
    }

    assert is_same_status(written, stored)
    assert not is_same_status(written, {**stored, "phase": "Pending"})
    assert not is_same_status(written, {**stored, "containerStatuses": []})


def test_restart_delays_double_up_to_five_minutes() -> None:
    delays = [container_states.backoff_seconds(restarts) for restarts in (0, 1, 2, 3, 6, 7, 90)]

    assert delays == [0, 10, 20, 40, 300, 300, 300]


def test_an_ended_container_keeps_its_termination_message_as_last_state() -> None:
    state = ContainerState("kserve-container", "tritonserver")
    state.run()
    state.end(1, "no such model")
    state.wait("CrashLoopBackOff", "back-off 10s")

    pod = {**manifests.pod(), "status": {"containerStatuses": [state.as_json()]}}
    failure = kserve_status.failure_of(pod)

    assert failure == {
        "location": "p",
        "reason": "ModelLoadFailed",
        "message": "no such model",
        "exitCode": 1,
    }
