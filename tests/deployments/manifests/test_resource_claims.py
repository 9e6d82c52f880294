"""GPUs by ResourceClaim: a template for the revision, its name in the pods, no device plugin's resource."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import resource_limits, revision
from deployments.manifests.domain.metadata import Manifest, ServedRevision
from deployments.spec.domain import cluster_support
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.gpus.domain import claimed_gpus
from fleet.observation.domain import parse
from portal.core.definitions import Rejected
from tests.deployments.manifest_strategies import CONTEXT
from tests.fleet import objects

GOOD: dict[str, Any] = {"engine": "triton", "instance_type": "p4d.24xlarge"}
_TOLERATIONS = "placement.claim_tolerations"


def made(data: dict[str, Any] | None = None, **placement: Any) -> dict[str, Manifest]:
    fields = {**GOOD, "placement": {"device_claims": True, **placement}, **(data or {})}
    served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", ServingSpec.from_json(fields))
    return {item["kind"]: item for item in revision.build_own(CONTEXT, served)}


def test_the_pod_names_the_template_and_its_server_the_claim() -> None:
    found = made({"gpus": 2})
    template, pod = found["ResourceClaimTemplate"], found["Deployment"]["spec"]["template"]
    name = template["metadata"]["name"]

    assert template["spec"]["spec"]["devices"]["requests"] == [
        {
            "name": "gpus",
            "exactly": {
                "deviceClassName": "gpu.nvidia.com",
                "allocationMode": "ExactCount",
                "count": 2,
            },
        }
    ]
    assert pod["spec"]["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": name}]
    (server,) = pod["spec"]["containers"]
    assert server["resources"]["claims"] == [{"name": "gpus"}]
    assert set(server["resources"]["limits"]) == {"cpu", "memory"}
    assert template["metadata"]["labels"]["slipway.dev/revision"] == "1"


def test_a_slice_is_claimed_by_its_profile() -> None:
    template = made({"gpu_resource": "nvidia.com/mig-1g.10gb"})["ResourceClaimTemplate"]
    [request] = template["spec"]["spec"]["devices"]["requests"]

    assert request["exactly"]["deviceClassName"] == "mig.nvidia.com"
    assert request["exactly"]["selectors"] == [
        {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}
    ]


def test_another_claim_has_another_name_because_a_template_cannot_change() -> None:
    one, two = (made({"gpus": n})["ResourceClaimTemplate"]["metadata"]["name"] for n in (1, 2))

    assert one != two


def test_tolerations_are_those_of_the_request_and_change_the_name_of_the_template() -> None:
    without = made({})["ResourceClaimTemplate"]
    tolerant = made({}, claim_tolerations="b/x=1:NoExecute, a:NoSchedule")["ResourceClaimTemplate"]

    (request,) = tolerant["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["tolerations"] == [
        {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "b/x", "operator": "Equal", "value": "1", "effect": "NoExecute"},
    ]
    assert "tolerations" not in without["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert tolerant["metadata"]["name"] != without["metadata"]["name"]


@pytest.mark.parametrize(
    ("data", "placement", "field"),
    [
        ({"gpu_resource": "nvidia.com/gpu.shared"}, {}, "placement.device_claims"),
        ({}, {"queue": "serving"}, "placement.queue"),
        (
            {
                "engine": "kserve-triton",
                "scaling": {"kind": "knative", "metric": "rps"},
                "max_replicas": 2,
            },
            {},
            "placement.device_claims",
        ),
        (
            {"engine": "llm-inference-service", "llm": {"hugging_face_id": "a/b", "nodes": 2}},
            {},
            "placement.device_claims",
        ),
        ({}, {"device_claims": False, "claim_product": "NVIDIA L4"}, "placement.claim_product"),
        ({}, {"device_claims": False, "claim_memory_gib": 40}, "placement.claim_memory_gib"),
        ({}, {"device_claims": False, "claim_tolerations": "a:NoSchedule"}, _TOLERATIONS),
        # Everything of any key is not offered, nor an effect that devices do not have.
        ({}, {"claim_tolerations": ":NoSchedule"}, _TOLERATIONS),
        ({}, {"claim_tolerations": "a:PreferNoSchedule"}, _TOLERATIONS),
        ({}, {"claim_product": "x' || true || '"}, "placement.claim_product"),
    ],
)
def test_what_claims_cannot_do_is_refused(
    data: dict[str, Any], placement: dict[str, Any], field: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        made(data, **placement)

    assert set(refusal.value.fields) == {field}


def test_a_cluster_that_drops_tolerations_refuses_them() -> None:
    placement = {"device_claims": True, "claim_tolerations": "a:NoSchedule"}
    spec = ServingSpec.from_json({**GOOD, "placement": placement, "network": {"access": "open"}})
    features = {
        "device-claims": Feature(is_there=True),
        "device-tolerations": Feature(is_there=False, why="Kubernetes 1.35 drops them"),
    }

    (found,) = cluster_support.missing(spec, Capabilities(features=features))

    assert (found.path, found.is_blocking) == (_TOLERATIONS, True)
    assert found.message.startswith("Kubernetes 1.35 drops them. Taints of devices (DRA) is needed")


@pytest.mark.parametrize(
    ("resource", "missing"),
    [
        ("nvidia.com/gpu", ["gpu.nvidia.com"]),
        ("nvidia.com/mig-1g.10gb", ["gpu.nvidia.com", "mig.nvidia.com"]),
    ],
)
def test_a_cluster_without_the_driver_refuses(resource: str, missing: list[str]) -> None:
    spec = ServingSpec.from_json(
        {
            **GOOD,
            "gpu_resource": resource,
            "placement": {"device_claims": True},
            "network": {"access": "open"},
        }
    )
    none = {name: Feature(is_there=False) for name in ("device-claims", "mig-claims")}

    found = cluster_support.missing(spec, Capabilities(features=none))

    assert [(item.path, item.is_blocking) for item in found] == [
        ("placement.device_claims", True) for _ in missing
    ]


def test_fleet_counts_what_a_pod_claims() -> None:
    labels = made({"gpu_resource": "nvidia.com/mig-1g.10gb"})["Deployment"]["spec"]["template"][
        "metadata"
    ]["labels"]
    pod = objects.pod(units=0)
    pod["metadata"]["labels"] = labels
    pod["spec"]["containers"][0]["resources"] = {}
    unclaimed = parse.pod(pod)
    pod["spec"]["resourceClaims"] = [{"name": "gpus"}]

    claimed = parse.pod(pod)

    assert (claimed.gpu_resource, claimed.gpu_units) == ("nvidia.com/mig-1g.10gb", 1)
    assert (unclaimed.gpu_resource, unclaimed.gpu_units) == ("", 0)


@pytest.mark.parametrize("value", ["", "nvidia.com_gpu", "nvidia.com_gpu.0", "x.1000", "gpu.-1"])
def test_a_label_that_says_nothing_counts_nothing(value: str) -> None:
    assert claimed_gpus.read({"slipway.dev/claimed-gpus": value}) == ("", 0)


def test_the_teams_quota_counts_claimed_devices() -> None:
    quota = resource_limits.limit_namespace(CONTEXT, quota_gpus=4)[0]

    for name in ("gpu.nvidia.com", "mig.nvidia.com"):
        assert quota["spec"]["hard"][f"{name}.deviceclass.resource.k8s.io/devices"] == "4"
