"""Common commands of the real kubectl."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.localcluster.api.manifests import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    deployment,
    inference_service,
)
from tests.localcluster.conftest import LocalApi
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def web(http: httpx.Client, namespace: str) -> str:
    answer = http.post(DEPLOYMENTS.format(namespace), json=deployment("web"))
    assert answer.status_code == 201, answer.text
    return "web"


def test_client_side_apply_creates_then_changes_then_is_unchanged(
    local_api: LocalApi, namespace: str
) -> None:
    def apply(image: str) -> str:
        manifest = json.dumps(deployment("web", image=image))
        return local_api.kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest)

    assert "created" in apply("one")
    assert "configured" in apply("two")
    assert "unchanged" in apply("two")


def test_server_side_apply_conflicts_with_another_manager_until_forced(
    local_api: LocalApi, namespace: str
) -> None:
    service = inference_service("detector")
    arguments = ("apply", "--server-side", "-n", namespace, "-f", "-")
    first = local_api.kubectl(*arguments, "--field-manager=slipway", stdin=json.dumps(service))
    service["spec"]["predictor"]["minReplicas"] = 3

    refused = local_api.try_kubectl(*arguments, stdin=json.dumps(service))
    forced = local_api.kubectl(*arguments, "--force-conflicts", stdin=json.dumps(service))

    assert "serverside-applied" in first
    assert refused.returncode != 0
    assert 'conflict with "slipway"' in refused.stderr
    assert ".spec.predictor.minReplicas" in refused.stderr
    assert "serverside-applied" in forced


def test_get_prints_columns_yaml_and_json(local_api: LocalApi, namespace: str, web: str) -> None:
    table = local_api.kubectl("get", "deploy", "-n", namespace)
    wide = local_api.kubectl("get", "deploy", "-n", namespace, "-o", "wide")
    text = local_api.kubectl("get", "deploy", web, "-n", namespace, "-o", "yaml")
    as_json = json.loads(local_api.kubectl("get", "deploy", web, "-n", namespace, "-o", "json"))

    assert table.split()[:5] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert "IMAGES" in wide
    assert "kind: Deployment" in text
    assert as_json["spec"]["replicas"] == 1


def test_describe_shows_events_of_the_object(
    local_api: LocalApi, http: httpx.Client, namespace: str, web: str
) -> None:
    obj = http.get(f"{DEPLOYMENTS.format(namespace)}/{web}").json()
    event = {
        "metadata": {"name": "web.1"},
        "involvedObject": {
            "kind": "Deployment",
            "namespace": namespace,
            "name": web,
            "uid": obj["metadata"]["uid"],
        },
        "reason": "ScalingReplicaSet",
        "message": "Scaled up",
        "type": "Normal",
        "source": {"component": "test"},
    }
    assert http.post(f"/api/v1/namespaces/{namespace}/events", json=event).status_code == 201

    text = local_api.kubectl("describe", "deploy", web, "-n", namespace)
    events = local_api.kubectl("get", "events", "-n", namespace)
    newer = http.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").json()

    assert "ScalingReplicaSet" in text
    assert "deployment/web" in events
    assert newer["items"][0]["note"] == "Scaled up"


def test_scale_and_the_three_kinds_of_patch(local_api: LocalApi, namespace: str, web: str) -> None:
    arguments = ("deploy", web, "-n", namespace)
    local_api.kubectl("scale", *arguments, "--replicas=3")
    scaled = json.loads(local_api.kubectl("get", *arguments, "-o", "json"))
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "b"}]}}}}
    local_api.kubectl("patch", *arguments, "-p", json.dumps(strategic))
    merge = {"spec": {"replicas": 5}}
    local_api.kubectl("patch", *arguments, "--type=merge", "-p", json.dumps(merge))
    add = [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]
    local_api.kubectl("patch", *arguments, "--type=json", "-p", json.dumps(add))

    patched = json.loads(local_api.kubectl("get", *arguments, "-o", "json"))

    assert scaled["spec"]["replicas"] == 3
    assert patched["spec"]["replicas"] == 5
    assert patched["metadata"]["labels"] == {"x": "y"}
    container = patched["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["env"]) == ("b", [{"name": "A", "value": "1"}])


def test_wait_for_condition_ready_ends_with_a_later_status(
    local_api: LocalApi, http: httpx.Client, namespace: str
) -> None:
    url = SERVICES.format(namespace)
    assert http.post(url, json=inference_service("detector")).status_code == 201
    command = [*_kubectl(), "wait", "--for=condition=Ready", "isvc/detector", "-n", namespace]
    waiting = subprocess.Popen(
        [*command, f"--timeout={PATIENCE_SECONDS}s"],
        env=local_api.kubectl_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )

    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    headers = {"Content-Type": "application/merge-patch+json"}
    patched = http.patch(f"{url}/detector/status", content=json.dumps(status), headers=headers)
    output, _ = waiting.communicate(timeout=PATIENCE_SECONDS)

    assert patched.status_code == 200
    assert "condition met" in output


def test_get_watch_prints_a_row_for_each_change(
    local_api: LocalApi, http: httpx.Client, namespace: str, web: str
) -> None:
    watching = subprocess.Popen(
        [*_kubectl(), "get", "deploy", "-n", namespace, "-w", "--no-headers"],
        env=local_api.kubectl_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    first = watching.stdout.readline()
    headers = {"Content-Type": "application/merge-patch+json"}
    change = json.dumps({"spec": {"replicas": 7}})
    http.patch(f"{DEPLOYMENTS.format(namespace)}/{web}", content=change, headers=headers)

    second = watching.stdout.readline()

    watching.terminate()
    watching.wait(timeout=10)
    watching.stdout.close()
    assert first.split()[:2] == ["web", "0/1"]
    assert second.split()[:2] == ["web", "0/7"]


def test_delete_waits_until_the_object_is_removed(
    local_api: LocalApi, namespace: str, web: str
) -> None:
    output = local_api.kubectl("delete", "deploy", web, "-n", namespace)
    missing = local_api.try_kubectl("get", "deploy", web, "-n", namespace)

    assert "deleted" in output
    assert 'deployments.apps "web" not found' in missing.stderr


def test_api_resources_lists_short_names(local_api: LocalApi) -> None:
    output = local_api.kubectl("api-resources")

    assert "isvc" in output
    assert "gateway.networking.k8s.io/v1" in output


def test_unknown_field_is_refused_by_name(local_api: LocalApi, namespace: str) -> None:
    wrong = deployment("web")
    wrong["spec"]["replcias"] = 2

    refused = local_api.try_kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(wrong))

    assert refused.returncode != 0
    assert 'unknown field "spec.replcias"' in refused.stderr


def test_access_and_version_are_answered(local_api: LocalApi) -> None:
    assert local_api.kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "v1.37" in local_api.kubectl("version")


def test_protobuf_is_refused_with_an_alternative(local_api: LocalApi, http: httpx.Client) -> None:
    refused = local_api.try_kubectl("create", "configmap", "a", "--from-literal=a=b")

    assert "kubectl apply -f" in refused.stderr
    assert http.get(f"{CONFIG_MAPS.format('default')}/a").status_code == 404


def _kubectl() -> list[str]:

    return [str(Path(sys.executable).with_name("kubectl"))]
