"""A namespace that enforces Pod Security *restricted* takes every pod that the portal writes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings

from deployments.manifests.domain import namespace, revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from tests.contract import pod_security
from tests.deployments.manifest_strategies import placed
from tests.deployments.manifests.test_manifests import CONTEXT, all_manifests

_LLM = {"hugging_face_id": "org/model"}
_CASES: tuple[dict[str, Any], ...] = (
    {"engine": "triton"},
    {"engine": "kserve-triton"},
    {"engine": "kserve-triton", "scaling": {"kind": "knative"}},
    {"engine": "triton-vllm", "llm": _LLM},
    {"engine": "kserve-vllm", "llm": _LLM},
    {"engine": "kserve-sglang", "llm": _LLM},
    {"engine": "kserve-tensorrt-llm", "llm": _LLM},
    {"engine": "kserve-vllm", "llm": {"artifact": "pvc://weights/m", "nodes": 2}},
    {"engine": "llm-inference-service", "llm": _LLM},
)


def _served(case: dict[str, Any]) -> ServedRevision:
    spec = ServingSpec.from_json({"instance_type": "g5.xlarge", **case})
    return ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec)


def _pods(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    return {
        f"{manifest['kind']} {where}": pod
        for manifest in all_manifests(context, served)
        for where, pod in pod_security.pods_of(manifest)
    }


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["engine"])
def test_every_engine_writes_pods_that_restricted_takes(case: dict[str, Any]) -> None:
    pods = _pods(CONTEXT, _served(case))

    assert pods
    assert {where: pod_security.violations(pod) for where, pod in pods.items()} == {
        where: [] for where in pods
    }


@settings(max_examples=60)
@given(placed())
def test_every_requested_setting_passes_restricted_pod_security(
    pair: tuple[ManifestContext, ServedRevision],
) -> None:
    for where, pod in _pods(*pair).items():
        assert pod_security.violations(pod) == [], where


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["engine"])
def test_no_pod_has_a_token_of_the_clusters_api(case: dict[str, Any]) -> None:
    pods = _pods(CONTEXT, _served(case))

    # What a runtime writes becomes part of an InferenceService's pod, which says it.
    assert {
        where: pod.get("automountServiceAccountToken")
        for where, pod in pods.items()
        if not where.startswith("ServingRuntime")
    } == {where: False for where in pods if not where.startswith("ServingRuntime")}
    assert namespace.service_account(CONTEXT)["automountServiceAccountToken"] is False


@pytest.mark.parametrize("engine", ["triton", "kserve-triton", "triton-vllm"])
def test_triton_writes_to_its_volumes_only(engine: str) -> None:
    case: dict[str, Any] = {"engine": engine}
    if engine == "triton-vllm":
        case["llm"] = _LLM
    for where, pod in _pods(CONTEXT, _served(case)).items():
        if where.startswith("ServingRuntime"):
            continue
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod_security.containers_of(pod):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            assert mounts["/tmp"] == "scratch"
            assert set(mounts.values()) <= volumes
            assert {"name": "HOME", "value": "/tmp"} in container["env"]


def test_the_namespace_enforces_it() -> None:
    labels = namespace.namespace(CONTEXT)["metadata"]["labels"]

    assert {k: v for k, v in labels.items() if k.startswith("pod-security")} == {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
        "pod-security.kubernetes.io/audit": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }


def _pod() -> dict[str, Any]:
    (deployment,) = [
        manifest
        for manifest in revision.build_own(CONTEXT, _served({"engine": "triton"}))
        if _is_deployment(manifest)
    ]
    return copy.deepcopy(deployment["spec"]["template"]["spec"])


def _is_deployment(manifest: Manifest) -> bool:
    return bool(manifest["kind"] == "Deployment")


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("hostNetwork",), True, "hostNetwork is set"),
        (("volumes", 0), {"name": "v", "hostPath": {"path": "/"}}, "volume v is ['hostPath']"),
        (("containers", 0, "securityContext"), {}, "tritonserver may escalate privileges"),
        (
            ("containers", 0, "securityContext", "capabilities"),
            {"drop": ["NET_RAW"]},
            "tritonserver keeps capabilities",
        ),
        (
            ("containers", 0, "securityContext", "capabilities"),
            {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
            "tritonserver adds capabilities",
        ),
        (
            ("initContainers", 0, "securityContext", "privileged"),
            True,
            "storage-initializer is privileged",
        ),
        (
            ("containers", 0, "securityContext", "seccompProfile"),
            {"type": "Unconfined"},
            "tritonserver has no seccomp profile",
        ),
        (("containers", 0, "securityContext", "runAsUser"), 0, "tritonserver runs as root"),
        (
            ("containers", 0, "ports", 0, "hostPort"),
            8080,
            "tritonserver takes a port of the node",
        ),
    ],
)
def test_the_check_refuses_what_the_standard_refuses(
    path: tuple[str | int, ...], value: Any, fault: str
) -> None:
    pod = _pod()
    assert pod_security.violations(pod) == []
    target: Any = pod
    for step in path[:-1]:
        target = target[step]

    target[path[-1]] = value

    assert fault in pod_security.violations(pod)
