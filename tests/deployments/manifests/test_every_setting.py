"""Every field of the form reaches a manifest, or Triton's configuration, with exactly its value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from deployments.changes.web import request_body
from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ServedRevision
from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT
from tests.deployments.manifests.language_model_settings import ARGS, OPTIONS
from tests.deployments.manifests.settings_in_manifests import ARRIVES, ROUTE, TRITON

_CONTEXT = replace(CONTEXT, role_arn="arn:aws:iam::111122223333:role/models")
_SIGNATURE = Signature(
    inputs=(Tensor("x", "FP32", (-1, 2)),),
    outputs=(Tensor("y", "FP32", (-1, 2)),),
    max_batch_size=16,
)


def spec_with(typed: Mapping[str, str]) -> ServingSpec:
    """What the form sends with these fields typed in."""
    data = {**request_body.DEFAULTS, "share": "g5.xlarge|nvidia.com/gpu|1", **typed}
    return ServingSpec.from_json(request_body.spec_of(data))


def made(typed: Mapping[str, str]) -> dict[str, Any]:
    """Every object of the revision by kind, and Triton's configuration as "config"."""
    spec = spec_with(typed)
    served = ServedRevision(1, "detector", "detector:1", "ab" * 32, "s3://b/p/", spec, size_mib=100)
    objects = [*revision.build_shared(_CONTEXT, served), *revision.build_own(_CONTEXT, served)]
    config = triton_config.render(model="detector", signature=_SIGNATURE, spec=spec)
    return {**{row["kind"]: row for row in objects}, "config": config}


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = (value or {}).get(name.replace("$", "."))
    return value


@pytest.mark.parametrize(("field", "typed", "path", "expected"), ARRIVES)
def test_a_value_in_the_form_reaches_the_manifest(
    field: str, typed: Mapping[str, str], path: str, expected: Any
) -> None:
    value = at(made(typed), path)

    if path == "config" and expected.startswith("!"):
        assert expected[1:] not in value
    elif path in ("config", ARGS, OPTIONS):
        assert expected in (re.sub(r"\s+", " ", value) if path == "config" else value)
    else:
        assert value == expected


def test_every_field_of_the_form_is_covered_here() -> None:
    assert set(request_body.SETTINGS) == {field for field, *_ in ARRIVES}


def test_defaults_are_what_a_platform_engineer_would_write() -> None:
    manifests = made({"engine": "triton", "min_replicas": "2", "max_replicas": "2"})
    spec = manifests["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    amounts = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}

    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    assert container["readinessProbe"]["httpGet"] == {"path": "/v2/health/ready", "port": 8080}
    assert [constraint["topologyKey"] for constraint in pod["topologySpreadConstraints"]] == [
        "topology.kubernetes.io/zone"
    ]
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["nvidia.com/gpu"]
    assert "priorityClassName" not in pod
    assert pod["serviceAccountName"] == "slipway-models"
    assert at(manifests, ROUTE) == "arn:aws:iam::111122223333:role/models"
    assert at(pod, "volumes.1.emptyDir") == {"medium": "Memory", "sizeLimit": "1Gi"}
    budget = manifests["PodDisruptionBudget"]["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert manifests["NetworkPolicy"]["spec"]["policyTypes"] == ["Egress", "Ingress"]
    assert {"PeerAuthentication", "ServiceMonitor", "LocalModelCache"}.isdisjoint(manifests)


def test_the_download_in_kserves_pods_reads_with_the_secret_of_the_team() -> None:
    manifests = made({"storage_secret": "models-s3", "storage_service_account": "readers"})
    predictor = manifests["InferenceService"]["spec"]["predictor"]

    assert predictor["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "models-s3"}}]
    assert predictor["serviceAccountName"] == "readers"


def test_the_secret_of_the_team_is_named_to_kserves_cache() -> None:
    service = made({"storage_secret": "models-s3", "storage_model_cache": "cluster"})[
        "InferenceService"
    ]

    assert service["metadata"]["annotations"]["serving.kserve.io/storageSecretName"] == "models-s3"
    assert "initContainers" not in service["spec"]["predictor"]


@pytest.mark.parametrize(
    ("resource", "gpus"),
    [
        ("nvidia.com/gpu", 4),
        ("nvidia.com/gpu.shared", 1),
        ("nvidia.com/mig-1g.10gb", 1),
    ],
)
def test_a_gpu_share_is_a_whole_number_of_its_resource(resource: str, gpus: int) -> None:
    container = made({"engine": "triton", "share": f"p4d.24xlarge|{resource}|{gpus}"})
    resources = at(container, f"{TRITON}.containers.0.resources")

    assert resources["limits"][resource] == resources["requests"][resource] == str(gpus)
    assert at(container, f"{TRITON}.nodeSelector") == {
        "node.kubernetes.io/instance-type": "p4d.24xlarge"
    }
