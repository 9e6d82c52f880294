"""Pods of real Triton that share a model on a claim; the manifests are the portal's."""

from __future__ import annotations

import hashlib
from typing import Any

import boto3

from deployments.manifests.domain import triton_deployment
from deployments.manifests.domain.metadata import ManifestContext, ServedFile, ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.kinds import CLAIM, DEPLOYMENT, POD
from tests.localcluster.controllers import onnx_models
from tests.localcluster.controllers.running import BUCKET, Running
from tests.waiting import wait_for

_CONTEXT = ManifestContext(
    team="vision",
    namespace="vision",
    deployment="shared",
    deployment_id=7,
    is_local_cluster=True,
    gateway_namespace="slipway-gateway",
    gateway_name="slipway",
    triton_image="nvcr.io/nvidia/tritonserver:26.07-py3",
    storage_image="kserve/storage-initializer:v0.20.0",
)
_PREFIX = "one/"


def _deployment() -> dict[str, Any]:
    files = tuple(
        ServedFile(key.removeprefix(_PREFIX), hashlib.sha256(body).hexdigest())
        for key, body in onnx_models.objects().items()
        if key.startswith(_PREFIX)
    )
    spec = ServingSpec.from_json(
        {
            "engine": "triton",
            "instance_type": "g5.xlarge",
            "cpu": "1",
            "memory": "1Gi",
            "storage": {"model_cache": "volume", "volume_claim": "models"},
        }
    )
    served = ServedRevision(
        1, "adder", "adder:1", "ab" * 32, f"s3://{BUCKET}/{_PREFIX}", spec, files=files
    )
    made = triton_deployment.deployment(_CONTEXT, served)
    # Simulated nodes are of another type.
    del made["spec"]["template"]["spec"]["nodeSelector"]
    del made["spec"]["template"]["spec"]["serviceAccountName"]
    return made


def _ready(cluster: Running) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in _pods(cluster)
        if all(item["ready"] for item in pod["status"].get("containerStatuses") or [{"ready": 0}])
    ]


def _pods(cluster: Running) -> list[dict[str, Any]]:
    return cluster.store.list(POD, "vision", {"slipway.dev/deployment": "shared"})


def _log(cluster: Running, pod: str) -> str:
    (log,) = cluster.data_dir.glob(f"pods/vision_{pod}_*/storage-initializer.log")
    return log.read_text()


def test_the_second_pod_on_a_claim_reads_nothing_from_s3(cluster: Running, s3: S3Settings) -> None:
    created = cluster.store.create(DEPLOYMENT, _deployment())
    (first,) = wait_for("first pod", lambda: _pods(cluster))
    waiting = wait_for(
        "status of the pod",
        lambda: cluster.store.get(POD, "vision", first["metadata"]["name"]).get("status") or {},
    )
    cluster.store.create(CLAIM, _claim())
    (first_name,) = wait_for("the first pod is ready", lambda: _ready(cluster))
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint_url,
        aws_access_key_id=s3.access_key_id,
        aws_secret_access_key=s3.secret_access_key,
        region_name=s3.region,
    )
    for key in onnx_models.objects():
        if key.startswith(_PREFIX):
            client.delete_object(Bucket=BUCKET, Key=key)
    live = cluster.store.get(DEPLOYMENT, "vision", created["metadata"]["name"])
    live["spec"]["replicas"] = 2
    cluster.store.replace(DEPLOYMENT, live)
    names = wait_for(
        "two ready pods", lambda: _ready(cluster) if len(_ready(cluster)) == 2 else None
    )
    (second_name,) = set(names) - {first_name}

    assert 'persistentvolumeclaim "models" not found' in waiting["conditions"][0]["message"]
    assert cluster.store.get(CLAIM, "vision", "models")["status"]["phase"] == "Bound"
    assert "Downloading s3://models/one/" in _log(cluster, first_name)
    assert _log(cluster, second_name).endswith("is on the volume: nothing is downloaded\n")
    assert "Downloading" not in _log(cluster, second_name)


def _claim() -> dict[str, Any]:
    return {
        "metadata": {"name": "models", "namespace": "vision"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }
