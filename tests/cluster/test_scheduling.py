"""What the portal writes becomes pods on nodes: real controllers, the real scheduler."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from deployments.manifests.domain import resource_limits, revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.spec.domain import serving_spec
from deployments.spec.domain.engines import TRITON_ENGINES
from deployments.spec.domain.serving_spec import Llm, Placement, Storage
from fleet.kube.domain import resource_types
from fleet.kube.services import clients, objects
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served


def pods_of(cluster_id: int, namespace: str) -> list[dict[str, Any]]:
    client = clients.client_for(cluster_id)
    return client.list_all(resource_types.POD, namespace=namespace).items


def revision_of(context: ManifestContext, engine: str, **changed: Any) -> list[Manifest]:
    """`changed` are fields of the spec."""
    one = served(engine)
    one = dataclasses.replace(one, spec=one.spec.replace(**changed))
    if engine in serving_spec.LLM_ENGINES:
        llm = Llm(hugging_face_id="org/model", gated=True)
        one = dataclasses.replace(one, spec=one.spec.replace(llm=llm))
        context = dataclasses.replace(
            context,
            vllm_image="vllm/vllm-openai:v0.25.0",
            sglang_image="lmsysorg/sglang:v0.5.23",
            tensorrt_llm_image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        )
    return [*revision.build_shared(context, one), *revision.build_own(context, one)]


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_a_revision_becomes_a_pod_that_restricted_takes_on_a_node_with_gpus(
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    journey: Callable[[str], None],
    engine: str,
) -> None:
    with ready_node(admin, f"gpu-{context.namespace}"[:60]) as node:
        objects.apply(cluster_id=cluster_id, manifests=revision_of(context, engine))

        wait_until(
            lambda: (
                [pod["spec"].get("nodeName") for pod in pods_of(cluster_id, context.namespace)]
                == [node]
            ),
            lambda: admin.run("get", "events,pods", f"--namespace={context.namespace}"),
        )
        (pod,) = pods_of(cluster_id, context.namespace)

    labels = admin.get("namespace", context.namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    downloads = [item["name"] for item in pod["spec"]["initContainers"]]
    is_compared = engine in TRITON_ENGINES
    assert downloads == ["storage-initializer", *(["digest-check"] if is_compared else [])]
    journey(f"{engine}: applied, admitted under restricted, scheduled on a node with GPUs")


def test_models_on_a_shared_claim_are_admitted_and_wait_for_their_volume(
    cluster_id: int, context: ManifestContext, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    storage = Storage(model_cache="volume", volume_claim="models")
    one = served(serving_spec.TRITON)
    one = dataclasses.replace(one, spec=one.spec.replace(storage=storage))
    manifests = [*revision.build_shared(context, one), *revision.build_own(context, one)]
    with ready_node(admin, f"gpu-{context.namespace}"[:60]) as node:
        objects.apply(cluster_id=cluster_id, manifests=manifests)
        wait_until(
            lambda: any(
                'persistentvolumeclaim "models" not found' in condition.get("message", "")
                for pod in pods_of(cluster_id, context.namespace)
                for condition in pod["status"].get("conditions") or []
            ),
            lambda: admin.run("get", "events,pods", f"--namespace={context.namespace}"),
        )
        admin.apply(_shared_volume(context.namespace))
        wait_until(
            lambda: (
                [pod["spec"].get("nodeName") for pod in pods_of(cluster_id, context.namespace)]
                == [node]
            ),
            lambda: admin.run("get", "events,pods,pvc", f"--namespace={context.namespace}"),
        )
        (pod,) = pods_of(cluster_id, context.namespace)
        admin.run("delete", "persistentvolume", f"models-{context.namespace}", "--wait=false")

    assert [item["name"] for item in pod["spec"]["initContainers"]] == ["storage-initializer"]
    assert pod["spec"]["securityContext"]["fsGroup"] == 1000
    journey("shared volume: admitted under restricted, scheduled once its claim was bound")


def _shared_volume(namespace: str) -> list[Manifest]:
    name = f"models-{namespace}"
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": namespace, "name": "models"},
                "nfs": {"server": "files.example", "path": "/"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "models", "namespace": namespace},
            "spec": {
                **common,
                "volumeName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]


def test_images_are_kept_on_every_node_of_the_instance_type(
    cluster_id: int, context: ManifestContext, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    one = served(serving_spec.TRITON)
    one = dataclasses.replace(one, spec=one.spec.replace(placement=Placement(pre_pull=True)))
    manifests = [*revision.build_shared(context, one), *revision.build_own(context, one)]
    first, second = (f"gpu-{context.namespace}-{number}"[-60:] for number in (1, 2))

    def nodes() -> list[str]:
        return sorted(
            pod["spec"].get("nodeName", "")
            for pod in pods_of(cluster_id, context.namespace)
            if pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
        )

    with ready_node(admin, first), ready_node(admin, second):
        objects.apply(cluster_id=cluster_id, manifests=manifests)
        wait_until(lambda: nodes() == sorted([first, second]), nodes)

    journey("images: pods of a DaemonSet admitted under restricted on each node with GPUs")


def test_pods_go_to_the_next_instance_type_when_the_first_is_full(
    cluster_id: int, context: ManifestContext, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    one = served(serving_spec.TRITON)
    placement = Placement(other_instance_types="g6.xlarge")
    spec = one.spec.replace(placement=placement, gpus=4, min_replicas=2, max_replicas=2)
    one = dataclasses.replace(one, spec=spec)
    manifests = [*revision.build_shared(context, one), *revision.build_own(context, one)]
    # By name the other type comes first.
    other, first = (f"{letter}-{context.namespace}"[:60] for letter in "ab")

    def nodes() -> list[str]:
        pods = pods_of(cluster_id, context.namespace)
        return sorted(pod["spec"].get("nodeName", "") for pod in pods)

    with ready_node(admin, first), ready_node(admin, other, instance_type="g6.xlarge"):
        objects.apply(cluster_id=cluster_id, manifests=manifests)
        wait_until(
            lambda: nodes() == [other, first],
            lambda: admin.run("get", "events,pods", f"--namespace={context.namespace}"),
        )
    journey("two instance types: the pod without room on the first went to the second")


def test_the_first_instance_type_is_preferred_while_it_has_room(
    cluster_id: int, context: ManifestContext, admin: Kubectl
) -> None:
    one = served(serving_spec.TRITON)
    placement = Placement(other_instance_types="g6.xlarge")
    one = dataclasses.replace(one, spec=one.spec.replace(placement=placement))
    manifests = [*revision.build_shared(context, one), *revision.build_own(context, one)]
    other, first = (f"{letter}-{context.namespace}"[:60] for letter in "ab")

    with ready_node(admin, first), ready_node(admin, other, instance_type="g6.xlarge"):
        objects.apply(cluster_id=cluster_id, manifests=manifests)
        wait_until(
            lambda: (
                [pod["spec"].get("nodeName") for pod in pods_of(cluster_id, context.namespace)]
                == [first]
            ),
            lambda: admin.run("get", "events,pods", f"--namespace={context.namespace}"),
        )


def test_pods_beyond_the_teams_quota_are_refused_and_the_reason_is_on_the_deployment(
    cluster_id: int, context: ManifestContext
) -> None:
    quota = resource_limits.limit_namespace(context, quota_gpus=0)
    objects.apply(cluster_id=cluster_id, manifests=quota)
    _wait_for_quota(cluster_id, context, quota)

    objects.apply(cluster_id=cluster_id, manifests=revision_of(context, serving_spec.TRITON))

    def failures() -> list[str]:
        return replica_failures(cluster_id, context.namespace)

    wait_until(lambda: any("exceeded quota" in message for message in failures()), failures)
    assert pods_of(cluster_id, context.namespace) == []


def test_pods_that_pod_security_refuses_are_named_on_the_deployment(
    cluster_id: int, context: ManifestContext
) -> None:
    manifests = revision_of(context, serving_spec.TRITON)
    (workload,) = [manifest for manifest in manifests if manifest["kind"] == "Deployment"]
    workload["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": False}

    objects.apply(cluster_id=cluster_id, manifests=manifests)

    def failures() -> list[str]:
        return replica_failures(cluster_id, context.namespace)

    expected = 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
    wait_until(lambda: any(expected in message for message in failures()), failures)
    assert pods_of(cluster_id, context.namespace) == []


def replica_failures(cluster_id: int, namespace: str) -> list[str]:
    workloads = objects.list_objects(
        cluster_id=cluster_id,
        api_version="apps/v1",
        kind="Deployment",
        namespace=namespace,
        labels={},
    )
    conditions = [
        condition for item in workloads for condition in item["status"].get("conditions", [])
    ]
    return [
        condition["message"] for condition in conditions if condition["type"] == "ReplicaFailure"
    ]


def _wait_for_quota(cluster_id: int, context: ManifestContext, manifests: list[Manifest]) -> None:
    """Admission counts by the status that the quota controller writes."""
    (name,) = [one["metadata"]["name"] for one in manifests if one["kind"] == "ResourceQuota"]

    def status() -> Any:
        found = objects.get(
            cluster_id=cluster_id,
            api_version="v1",
            kind="ResourceQuota",
            namespace=context.namespace,
            name=name,
        )
        return (found or {}).get("status", {}).get("used")

    wait_until(lambda: bool(status()), status)
