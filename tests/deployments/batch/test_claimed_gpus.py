"""A batch job on GPUs that its workers claim: offered, fitted, priced, run and removed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from deployments.batch.services import estimates
from deployments.models import BatchJob
from fleet.models import Cluster
from fleet.observation.services import record
from portal.core.errors import Invalid
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.queue_bench import QueueBench
from tests.deployments.dra_world import dra
from tests.page import page

__all__ = ["dra"]
CLAIMED: dict[str, Any] = {"instance_type": "p4de.24xlarge", "device_claims": True}
PRODUCT = "NVIDIA A100-SXM4-80GB"
pytestmark = pytest.mark.usefixtures("dra")


def estimate(bench: Bench, **changed: Any) -> estimates.Estimate:
    draft = bench.draft(**{**CLAIMED, **changed})
    return estimates.check(actor=bench.world.member, team_slug="vision", draft=draft)


def refusal(bench: Bench, **changed: Any) -> Invalid:
    with pytest.raises(Invalid) as refused:
        estimate(bench, **changed)
    assert not BatchJob.objects.exists()
    return refused.value


def test_fit_and_price_are_those_of_the_devices(bench: Bench) -> None:
    one, two = estimate(bench), estimate(bench, workers=2)

    # One of the two GPUs is claimed by others; a GPU is a third of the node.
    assert (one.capacity.ok, one.capacity.detail) == (True, "1 of this size fits now.")
    assert one.price.usd_per_hour_amount == Decimal("9.149000")
    assert two.capacity.ok is False
    assert "1 of 2 fit now: not enough GPU" in two.capacity.detail
    assert estimate(bench, gpu_resource="nvidia.com/mig-1g.10gb").capacity.ok
    picky = estimate(bench, claim_product="NVIDIA H100").capacity
    assert "offers a GPU of NVIDIA H100 for claims" in picky.detail


def test_what_cannot_be_read_is_not_said_to_fit(bench: Bench) -> None:
    record.forget_devices(cluster_id=bench.world.cluster_id)

    assert estimate(bench).capacity.ok is None


def test_the_job_has_a_template_and_its_pods_claim(bench: Bench) -> None:
    bench.put_rows(10)
    job = bench.running(**CLAIMED, claim_product=PRODUCT, claim_memory_gib=40)

    (template,) = bench.made("ResourceClaimTemplate")
    (made,) = bench.made("Job")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu.nvidia.com"
    assert request["exactly"]["count"] == 1
    assert [one["cel"]["expression"] for one in request["exactly"]["selectors"]] == [
        f"device.attributes['gpu.nvidia.com'].productName == '{PRODUCT}'",
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
    ]
    pod = made["spec"]["template"]
    assert pod["spec"]["resourceClaims"] == [
        {"name": "gpus", "resourceClaimTemplateName": template["metadata"]["name"]}
    ]
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["claims"] == [{"name": "gpus"}]
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert pod["metadata"]["labels"]["slipway.dev/claimed-gpus"] == "nvidia.com_gpu.1"
    names = {key[0] for key in bench.world.cluster.objects}
    assert "ResourceClaimTemplate" in names

    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert job.state == "succeeded", job.state_reason
    assert bench.made("ResourceClaimTemplate") == bench.made("Job") == []


def test_without_claims_nothing_of_it_is_made(bench: Bench) -> None:
    bench.put_rows(10)
    bench.running()

    (made,) = bench.made("Job")
    assert bench.made("ResourceClaimTemplate") == []
    assert "resourceClaims" not in made["spec"]["template"]["spec"]
    assert "slipway.dev/claimed-gpus" not in made["spec"]["template"]["metadata"]["labels"]


def test_workers_of_a_queue_claim_too(queue_bench: QueueBench) -> None:
    job = queue_bench.running(**CLAIMED, hours=1)

    (template,) = queue_bench.bench.made("ResourceClaimTemplate")
    (made,) = queue_bench.bench.made("ScaledJob")
    pod = made["spec"]["jobTargetRef"]["template"]
    (claim,) = pod["spec"]["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert pod["metadata"]["labels"]["slipway.dev/claimed-gpus"] == "nvidia.com_gpu.1"
    queue_bench.bench.tick(job, seconds=2 * 3600)
    queue_bench.bench.tick(job)
    assert job.state == "succeeded"
    assert queue_bench.bench.made("ResourceClaimTemplate") == []


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        (
            {"device_claims": False},
            "instance_type",
            "Offered: p4de.24xlarge with nvidia.com/gpu by ResourceClaim (device_claims)",
        ),
        ({"instance_type": "g5.xlarge"}, "instance_type", "nvidia.com/gpu by ResourceClaim"),
        ({"gpu_resource": "nvidia.com/gpu.shared"}, "device_claims", "whole GPUs and MIG slices"),
        ({"queue": "gpus"}, "queue", "turn device_claims off"),
        ({"device_claims": False, "claim_memory_gib": 8}, "claim_memory_gib", "Only claims"),
    ],
)
def test_what_does_not_go_together_is_refused(
    bench: Bench, changed: dict[str, Any], field: str, message: str
) -> None:
    refused = refusal(bench, **changed)

    assert field in refused.fields
    assert message in str(refused.fields[field])


def test_a_cluster_without_the_class_is_refused(bench: Bench) -> None:
    cluster = Cluster.objects.get(pk=bench.world.cluster_id)
    missing = {
        "is_there": False,
        "version": "",
        "why": "The cluster has no DeviceClass mig.nvidia.com",
    }
    cluster.capabilities["features"]["mig-claims"] = missing
    cluster.save()

    refused = refusal(bench, gpu_resource="nvidia.com/mig-1g.10gb")

    assert "The cluster has no DeviceClass mig.nvidia.com" in str(refused.fields["device_claims"])


def test_the_form_offers_them_beside_those_of_the_plugin(bench: Bench) -> None:
    client = Client()
    client.force_login(bench.world.member)

    html = client.get("/vision/batch/new").content.decode()
    typed = {
        "gpus": "eks-test p4de.24xlarge nvidia.com/gpu claimed",
        "capacity": "on-demand",
        "workers": "1",
        "requests": "4",
        "hours": "3",
        "error_limit": "0",
        "cpu": "2",
        "memory": "8Gi",
        "claim_memory_gib": "100",
    }
    headers = {"HX-Request": "true", "HX-Target": "batch-estimate"}
    card = page(client.post("/vision/batch/new", typed, headers=headers))

    assert "eks-test: A10G, g5.xlarge<" in html
    assert "eks-test: A100-SXM4-80GB, p4de.24xlarge by ResourceClaim" in html
    assert "Product of claimed GPUs" in html
    assert "eks-test: A100-SXM4-80GB, slice 1g.10gb, p4de.24xlarge by ResourceClaim" in html
    assert card.term("While it runs").startswith("$9.15/h")
    assert "offers a GPU with 100 GiB for claims" in card.text


def tolerable(bench: Bench, *allowed: str, is_there: bool = True) -> None:
    cluster = Cluster.objects.get(pk=bench.world.cluster_id)
    why = "" if is_there else "Kubernetes 1.35 drops them"
    found = {"is_there": is_there, "version": "", "why": why}
    cluster.capabilities["features"]["device-tolerations"] = found
    cluster.serving = {**cluster.serving, "allowed_taints": list(allowed)}
    cluster.save()


def test_workers_tolerate_what_the_platform_allows(bench: Bench) -> None:
    tolerable(bench, "example.com/slow:NoSchedule")
    bench.put_rows(10)
    job = bench.running(**CLAIMED, claim_tolerations="example.com/slow:NoSchedule")

    (template,) = bench.made("ResourceClaimTemplate")
    assert job.state == "running"
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] == [
        {"key": "example.com/slow", "operator": "Exists", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize(
    ("allowed", "is_there", "message"),
    [
        ([], True, "example.com/slow:NoSchedule may not be tolerated on eks-test. Allowed: none"),
        (["example.com/slow=1:NoSchedule"], True, "Allowed: example.com/slow=1:NoSchedule."),
        (["example.com/slow:NoSchedule"], False, "Kubernetes 1.35 drops them"),
    ],
)
def test_what_may_not_be_tolerated_is_refused(
    bench: Bench, allowed: list[str], is_there: bool, message: str
) -> None:
    tolerable(bench, *allowed, is_there=is_there)

    refused = refusal(bench, claim_tolerations="example.com/slow:NoSchedule")

    assert message in str(refused.fields["claim_tolerations"])
