"""Probed capabilities of a cluster, with a fake behind the gateway's Protocol."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from fleet.clusters.domain.capabilities import Capabilities, Feature, GpuOffer, Offer
from fleet.clusters.services import capabilities
from fleet.kube.domain.errors import Unreachable
from fleet.models import Cluster
from fleet.observation.services import sweep
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node

pytestmark = pytest.mark.django_db


def gateway(status: str = "True", message: str = "") -> dict[str, Any]:
    condition = {"type": "Programmed", "status": status, "message": message}
    return {
        "kind": "Gateway",
        "metadata": {"namespace": "slipway-gateway", "name": "slipway"},
        "spec": {"gatewayClassName": "istio"},
        "status": {"conditions": [condition]},
    }


def gateway_class(*features: Any) -> dict[str, Any]:
    return {
        "kind": "GatewayClass",
        "metadata": {"name": "istio"},
        "status": {"supportedFeatures": list(features)},
    }


def controller(namespace: str, name: str, image: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }


def probed(cluster: Cluster) -> Capabilities:
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities)


def test_versions_are_those_that_controllers_say_of_themselves(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.api_groups["keda.sh"] = ["v1alpha1"]
    kube.put(
        controller("kserve", "kserve-controller-manager", "kserve/kserve-controller:v0.20.0"),
        controller(
            "keda", "keda-operator", "x@sha256:1", **{"app.kubernetes.io/version": "2.20.2"}
        ),
    )

    result = probed(cluster)

    assert result.feature("kubernetes") == Feature(True, "v1.36.2")
    assert result.feature("kserve") == Feature(True, "v0.20.0")
    assert result.feature("keda") == Feature(True, "2.20.2")
    assert result.feature("istio") == Feature(False)


def test_version_that_may_not_be_read_is_the_one_of_the_api(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.forbidden = {"deployments"}

    assert probed(cluster).feature("kserve") == Feature(True, "v1beta1")


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ({}, Feature(False, why="The installed KServe does not include it")),
        ({"serving.kserve.io/v1alpha1": ["llminferenceservices"]}, Feature(True, "v1alpha1")),
    ],
)
def test_llm_service_support_is_read_from_what_kserve_serves(
    kube: FakeKube, cluster: Cluster, served: dict[str, list[str]], expected: Feature
) -> None:
    kube.api_groups["serving.kserve.io"] = ["v1beta1", "v1alpha1"]
    kube.served = served

    assert probed(cluster).feature("llm-inference-service") == expected


def test_prefix_routing_needs_the_inference_extension(kube: FakeKube, cluster: Cluster) -> None:
    kube.api_groups["serving.kserve.io"] = ["v1beta1", "v1alpha1"]
    kube.served = {"serving.kserve.io/v1alpha1": ["llminferenceservices"]}
    kube.put(gateway())

    before = probed(cluster).offers("prefix-routing")
    kube.api_groups["inference.networking.k8s.io"] = ["v1"]
    after = probed(cluster).offers("prefix-routing")

    assert before.ok is False
    assert before.why == (
        "InferencePool is not installed. It is needed for routing requests for language models by "
        "prefix cache."
    )
    assert after == Offer(ok=True)


def test_knative_mode_needs_both_and_names_the_default(kube: FakeKube, cluster: Cluster) -> None:
    assert probed(cluster).feature("kserve-knative").is_there is False
    kube.api_groups["serving.knative.dev"] = ["v1"]
    kube.put(
        {
            "kind": "ConfigMap",
            "metadata": {"namespace": "kserve", "name": "inferenceservice-config"},
            "data": {"deploy": '{"defaultDeploymentMode": "Serverless"}'},
        }
    )

    assert probed(cluster).feature("kserve-knative") == Feature(
        True, "v1", "KServe uses Serverless mode by default."
    )


def test_gateway_counts_only_when_it_is_programmed(kube: FakeKube, cluster: Cluster) -> None:
    where = "Gateway slipway-gateway/slipway"
    assert probed(cluster).feature("gateway-api") == Feature(False, "v1", f"{where} does not exist")
    kube.put(gateway("False", "no load balancer yet."))
    assert probed(cluster).feature("gateway-api").why == (
        f"{where} is not programmed (no load balancer yet)"
    )
    kube.put(gateway())
    assert probed(cluster).feature("gateway-api") == Feature(True, "v1", f"{where} is programmed.")


def test_shadow_is_offered_where_the_gateways_class_says_that_it_mirrors_a_share(
    kube: FakeKube, cluster: Cluster
) -> None:
    assert probed(cluster).offers("shadow").ok is False
    kube.put(gateway())
    assert probed(cluster).offers("shadow") == Offer(
        ok=False,
        why="GatewayClass istio does not exist. Request mirroring is needed for shadow rollouts.",
    )
    kube.put(gateway_class({"name": "HTTPRoutePathRewrite"}, {"name": "HTTPRouteRequestMirror"}))
    assert probed(cluster).offers("shadow") == Offer(
        ok=False,
        why="istio cannot mirror a percentage of requests. Request mirroring is needed for shadow rollouts.",
    )
    kube.put(gateway_class({"name": "HTTPRouteRequestPercentageMirror"}))
    assert probed(cluster).offers("shadow") == Offer(ok=True)
    kube.put(gateway_class("HTTPRouteRequestPercentageMirror"))
    assert probed(cluster).offers("shadow") == Offer(ok=True)


def test_whether_an_unresponsive_gateway_mirrors_is_not_known(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.put(gateway(), gateway_class())
    assert probed(cluster).offers("shadow") == Offer(
        None,
        "Could not check Request mirroring. GatewayClass istio does not report what it supports.",
    )
    kube.forbidden = {"gatewayclasses"}
    assert probed(cluster).offers("shadow") == Offer(
        None,
        "Could not check Request mirroring. The portal's role has no permission to "
        "get gatewayclasses.gateway.networking.k8s.io.",
    )


def test_a_forbidden_probe_is_not_known_and_names_the_permission(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.forbidden = {"gateways", "nodes"}

    result = probed(cluster)

    assert result.feature("gateway-api") == Feature(
        None,
        why="The portal's role has no permission to get gateways.gateway.networking.k8s.io "
        "in slipway-gateway.",
    )
    assert result.gpu_offers is None
    assert result.offers("nvidia.com/gpu").why == (
        "Could not check GPUs: the portal's role has no permission to list nodes."
    )


def test_gpu_offers_join_nodes_alike_and_keep_shares_apart() -> None:
    def labelled(resource: str, units: str, **labels: str) -> dict[str, Any]:
        names = {key.replace("_", "."): value for key, value in labels.items()}
        offered = {f"nvidia.com/{key}": value for key, value in names.items()}
        return {
            "metadata": {"labels": offered},
            "status": {"allocatable": {resource: units, "cpu": "8"}},
        }

    a10 = {"gpu_product": "NVIDIA-A10G", "gpu_memory": "22888", "gpu_count": "1"}
    sliced = a10 | {"gpu_product": "NVIDIA-A10G-SHARED", "gpu_replicas": "4"}
    h100 = {"gpu_product": "NVIDIA-H100", "gpu_memory": "81920", "gpu_count": "1"}
    nodes = [
        labelled("nvidia.com/gpu", "1", **a10),
        labelled("nvidia.com/gpu", "1", **a10),
        labelled("nvidia.com/gpu", "4", **sliced),
        labelled("nvidia.com/mig-1g.10gb", "7", **h100),
        labelled("nvidia.com/gpu", "0", **a10),
    ]

    assert capabilities.gpu_offers(nodes) == (
        GpuOffer("nvidia.com/gpu", "NVIDIA-A10G", 5722, nodes=1, units=4, sharing="shared"),
        GpuOffer("nvidia.com/gpu", "NVIDIA-A10G", 22888, nodes=2, units=2, sharing="whole"),
        GpuOffer("nvidia.com/mig-1g.10gb", "NVIDIA-H100", 10240, nodes=1, units=7, sharing="mig"),
    )


def test_sweep_probes_again_after_ten_minutes_and_at_once_after_an_upgrade(
    kube: FakeKube, cluster: Cluster
) -> None:
    Cluster.objects.update(capabilities={"features": {}, "probed_at": START.isoformat()})
    kube.put(node())

    def keda_after(seconds: float) -> bool | None:
        Cluster.objects.update(next_check_at=START)
        with time_machine.travel(START + timedelta(seconds=seconds), tick=False):
            sweep.observe_due()
        stored = Capabilities.from_json(Cluster.objects.get().capabilities)
        return stored.feature("keda").is_there

    assert keda_after(0) is False
    kube.api_groups["keda.sh"] = ["v1alpha1"]
    assert keda_after(599) is False
    assert keda_after(600) is True


def test_a_cluster_that_is_down_keeps_what_was_known_of_it(
    kube: FakeKube, cluster: Cluster
) -> None:
    before = probed(cluster)
    kube.broken = Unreachable("no route to host")

    with pytest.raises(Unreachable):
        capabilities.probe(cluster_id=cluster.pk)

    assert Capabilities.from_json(Cluster.objects.get().capabilities) == before


@pytest.mark.parametrize(
    ("ingress", "is_offered"),
    [
        ('{"enableLLMInferenceServiceTLS": true}', False),
        ('{"enableLLMInferenceServiceTLS": false}', True),
        ('{"ingressGateway": "kserve/gateway"}', True),
        ("not json", True),
        ("[]", True),
    ],
)
def test_llm_services_over_tls_are_not_offered_and_the_setting_is_named(
    kube: FakeKube, cluster: Cluster, ingress: str, is_offered: bool
) -> None:
    kube.api_groups["serving.kserve.io"] = ["v1beta1", "v1alpha2"]
    kube.served["serving.kserve.io/v1alpha2"] = ["llminferenceservices"]
    kube.put(
        {
            "kind": "ConfigMap",
            "metadata": {"namespace": "kserve", "name": "inferenceservice-config"},
            "data": {"ingress": ingress},
        }
    )

    offer = probed(cluster).offers_engine("llm-inference-service")

    assert offer.ok is is_offered
    assert is_offered or offer.why.startswith(
        "KServe serves it over TLS with certificates that the gateway cannot verify: set "
        "enableLLMInferenceServiceTLS to false under ingress in ConfigMap inferenceservice-config"
    )
