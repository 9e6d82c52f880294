"""Warnings of an API server about objects that it accepts, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain import serving_spec
from fleet.kube.services import objects
from tests.contract.conftest import served

_BARE: dict[str, Any] = {"securityContext": {}}
_SAFE: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_NAMES = '"storage-initializer", "digest-check", "tritonserver"'
_NOTHING_SET = (
    f"allowPrivilegeEscalation != false (containers {_NAMES} must set "
    "securityContext.allowPrivilegeEscalation=false), "
    f"unrestricted capabilities (containers {_NAMES} must set "
    'securityContext.capabilities.drop=["ALL"]), '
    f"runAsNonRoot != true (pod or containers {_NAMES} must set "
    "securityContext.runAsNonRoot=true), "
    f"seccompProfile (pod or containers {_NAMES} must set "
    'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
)
_ALL_WRONG = (
    "host namespaces (hostNetwork=true, hostPID=true), "
    'allowPrivilegeEscalation != false (container "tritonserver" must set '
    "securityContext.allowPrivilegeEscalation=false), "
    'unrestricted capabilities (container "tritonserver" must set '
    'securityContext.capabilities.drop=["ALL"]; container "tritonserver" must not include '
    '"CHOWN", "SYS_ADMIN" in securityContext.capabilities.add), '
    'restricted volume types (volume "host" uses restricted volume type "hostPath"), '
    'runAsNonRoot != true (pod and container "tritonserver" must not set '
    "securityContext.runAsNonRoot=false), "
    'runAsUser=0 (pod and container "tritonserver" must not set runAsUser=0), '
    'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")'
)
_ROOT_POD: dict[str, Any] = {
    "hostNetwork": True,
    "hostPID": True,
    "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
    "securityContext": {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "seccompProfile": {"type": "Unconfined"},
    },
}
# Without privileged, which an API server refuses unless it is started with --allow-privileged.
_ROOT: dict[str, Any] = {
    "capabilities": {"add": ["SYS_ADMIN", "CHOWN"]},
    "runAsNonRoot": False,
    "runAsUser": 0,
}
_AT_BASELINE = (
    'non-default capabilities (container "tritonserver" must not include "SYS_ADMIN" in '
    "securityContext.capabilities.add), host namespaces (hostNetwork=true, hostPID=true), "
    'hostPath volumes (volume "host"), seccompProfile (pod must not set '
    'securityContext.seccompProfile.type to "Unconfined")'
)


def _deployment(context: ManifestContext, pod: Any, container: Any) -> Any:
    """The plain Triton engine's, with these settings of security instead of its own."""
    manifest = revision.build_own(context, served(serving_spec.TRITON))[0]
    spec = manifest["spec"]["template"]["spec"]
    spec |= {key: value for key, value in pod.items() if key != "volumes"}
    spec["volumes"] = [*spec["volumes"], *pod.get("volumes", ())]
    for item in (*spec["initContainers"], *spec["containers"]):
        item["securityContext"] = dict(_SAFE)
        item.pop("ports", None) if pod.get("hostNetwork") else None
    if container is None:
        for item in (*spec["initContainers"], *spec["containers"]):
            item["securityContext"] = {}
    elif container:
        spec["containers"][0]["securityContext"] = container
    return manifest


def _warn(cluster_id: int, name: str, level: str) -> None:
    labels = {"pod-security.kubernetes.io/warn": level}
    manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }
    objects.apply(cluster_id=cluster_id, manifests=[manifest], force=True)


@pytest.mark.parametrize(
    ("level", "pod", "container", "faults"),
    [
        ("restricted", _BARE, None, _NOTHING_SET),
        ("restricted", _ROOT_POD, _ROOT, _ALL_WRONG),
        ("baseline", _ROOT_POD, _ROOT, _AT_BASELINE),
    ],
    ids=["nothing-set", "all-wrong", "baseline"],
)
def test_pod_security_is_a_warning_of_a_dry_run(
    cluster_id: int, context: ManifestContext, level: str, pod: Any, container: Any, faults: str
) -> None:
    _warn(cluster_id, context.namespace, level)
    manifest = _deployment(context, pod, container)

    warnings = objects.dry_run(cluster_id=cluster_id, manifests=[manifest])

    name = manifest["metadata"]["name"]
    text = f'would violate PodSecurity "{level}:latest": {faults}'
    assert warnings == [f"Deployment {name}: {text}"]


@pytest.mark.parametrize(
    ("level", "container"), [("restricted", {}), ("baseline", None), ("privileged", _ROOT)]
)
def test_pods_within_the_standard_give_none(
    cluster_id: int, context: ManifestContext, level: str, container: Any
) -> None:
    _warn(cluster_id, context.namespace, level)
    manifest = _deployment(context, _BARE, container)

    assert objects.dry_run(cluster_id=cluster_id, manifests=[manifest]) == []


def test_what_the_portal_writes_gives_no_warning(cluster_id: int, context: ManifestContext) -> None:
    _warn(cluster_id, context.namespace, "restricted")
    manifests = revision.build_own(context, served(serving_spec.TRITON))

    assert objects.dry_run(cluster_id=cluster_id, manifests=manifests) == []
