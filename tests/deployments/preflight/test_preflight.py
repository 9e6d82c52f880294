"""Warnings and refusals before a request is sent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from deployments.changes.services import requests
from deployments.models import Deployment, ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.registry.gateways.object_store import StoreUnreachable
from deployments.spec.domain.serving_spec import Scaling
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.kube.domain.errors import ObjectInvalid, Unreachable
from fleet.models import Cluster, Node, Workload
from portal.accounts.models import Team
from portal.core.errors import Invalid
from tests.capabilities import offering
from tests.deployments.refusals import refused
from tests.deployments.world import World


def test_an_engine_that_the_cluster_lacks_is_refused_with_the_others(world: World) -> None:
    Cluster.objects.update(capabilities=offering("triton", reason="KServe is missing."))

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft())
    assert raised[0].fields["engine"].endswith("KServe is missing. Choose triton.")


def test_what_the_cluster_refuses_in_a_dry_run_is_refused(world: World) -> None:
    world.cluster.refuse["InferenceService"] = ObjectInvalid("no such runtime")

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft())
    assert "no such runtime" in raised[0].message


def test_a_warning_of_the_cluster_is_shown_and_does_not_refuse(world: World) -> None:
    world.cluster.warn["InferenceService"] = "serving.kserve.io/v1beta1 is deprecated."
    world.cluster.warn["PodDisruptionBudget"] = "a budget of one pod blocks no drain"

    result = preflight.check(actor=world.member, draft=world.draft())

    accepted, warnings = result.checks[-2:]
    assert (accepted.name, accepted.ok) == ("Server dry-run", True)
    assert warnings == Check(
        "Cluster warnings",
        ok=False,
        detail="PodDisruptionBudget detector-r1: a budget of one pod blocks no drain. "
        "InferenceService detector-r1: serving.kserve.io/v1beta1 is deprecated.",
        fix="The cluster accepts these objects. A later release or a stricter policy may refuse them.",
        is_blocking=False,
    )
    assert result.can_submit


def test_pod_security_of_another_namespace_is_no_warning(world: World) -> None:
    """Before the team's namespace exists the dry run is tried in another one."""
    del world.cluster.objects["Namespace", "", "vision"]
    world.cluster.warn["InferenceService"] = 'would violate PodSecurity "restricted:latest": root'

    result = preflight.check(actor=world.member, draft=world.draft())

    assert "Cluster warnings" not in {check.name for check in result.checks}
    assert result.checks[-1].detail.endswith("vision is created with the first deployment.")


def test_a_cluster_that_does_not_answer_is_not_known_and_does_not_refuse(world: World) -> None:
    world.cluster.fail_with = Unreachable("connection refused")

    result = preflight.check(actor=world.member, draft=world.draft())

    check = next(check for check in result.checks if check.name == "Server dry-run")
    assert check.ok is None
    assert result.can_submit


def test_cost_and_forecast_are_known_before_anything_happens(world: World) -> None:
    result = preflight.check(actor=world.member, draft=world.draft(min_replicas=2, max_replicas=4))

    assert result.cost.per_hour == Decimal("2.012000")
    assert (result.cost.month_min, result.cost.month_max) == (
        Decimal("1468.76"),
        Decimal("2937.52"),
    )
    assert result.cost.budget == Decimal("5000.00")
    assert result.url == "http://gateway.example/vision/detector"
    assert "kind: InferenceService" in result.manifests
    assert [check.name for check in result.checks] == [
        "Name",
        "Version",
        "Artifact",
        "Access",
        "Engine",
        "Runtime",
        "Scaling",
        "Settings",
        "GPU memory",
        "Quota",
        "Budget",
        "Capacity now",
        "Server dry-run",
    ]
    assert Deployment.objects.count() == 0


def test_over_budget_is_a_warning_for_the_approver(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(monthly_budget_amount=Decimal(1))

    result = preflight.check(actor=world.member, draft=world.draft())

    check = next(check for check in result.checks if check.name == "Budget")
    assert check.ok is False
    assert result.can_submit


def check_named(world: World, name: str, **changed: Any) -> Check:
    result = preflight.check(actor=world.member, draft=world.draft(**changed))
    return next(check for check in result.checks if check.name == name)


def test_the_objects_that_serving_reads_are_checked(world: World) -> None:
    assert check_named(world, "Artifact").detail == (
        "10 bytes and the configuration are in the serving repository."
    )
    model_key = next(key for key in world.store.sizes if key.endswith("model.onnx"))

    world.store.sizes[model_key] = 11
    changed = check_named(world, "Artifact")
    del world.store.sizes[model_key]
    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft())

    assert changed.detail == (
        f"The serving repository differs from the verified file: {model_key} was overwritten."
    )
    assert changed.is_refusal
    assert "detector/1/model.onnx" in raised[0].fields["version_id"]
    assert (
        raised[0]
        .fields["version_id"]
        .endswith("Upload the file again as a new version, and request that one.")
    )


def test_a_store_that_does_not_answer_is_not_known_and_does_not_refuse(world: World) -> None:
    world.store.fail_with = StoreUnreachable("timed out")

    assert check_named(world, "Artifact").ok is None


def test_a_setting_that_the_cluster_lacks_is_refused_by_name(world: World) -> None:
    features = {name: Feature(True) for name in ("kubernetes", "kserve", "hpa-metrics")}
    raw = Capabilities(features={**features, "keda": Feature(False)}).to_json()
    Cluster.objects.update(capabilities=raw)

    keda = check_named(world, "Settings", max_replicas=2, scaling=Scaling(kind="keda"))
    plain = check_named(world, "Settings", max_replicas=2)

    assert keda.is_refusal
    assert keda.detail.startswith("scaling.kind: KEDA is not installed")
    assert plain.detail == "eks-test supports all requested settings."


def test_only_a_measurement_of_too_much_memory_refuses(world: World) -> None:
    parts = {"weights": 24000, "activations": 200, "runtime": 450}
    ModelVersion.objects.update(signature={"vram_parts_mib": parts})
    estimated = check_named(world, "GPU memory")
    ModelVersion.objects.update(signature={})
    small = world.serving(name="other")
    Workload.objects.filter(name="other-r1").update(gpu_memory_peak_mib=30_000)
    ModelVersion.objects.update(signature={"vram_parts_mib": parts})
    measured = check_named(world, "GPU memory")

    assert small.stable_revision is not None
    assert (estimated.ok, estimated.is_refusal) == (False, False)
    assert estimated.detail == "24,656 MiB estimated, 24,576 MiB on each GPU."
    assert measured.is_refusal
    assert measured.detail == "30,000 MiB measured, 24,576 MiB on each GPU."


def test_a_canary_that_todays_clients_cannot_call_is_refused(world: World) -> None:
    image = {"name": "image", "dtype": "FP32", "dims": [-1, 3, 224, 224]}
    label = {"name": "label", "dtype": "INT64", "dims": [-1]}
    ModelVersion.objects.update(signature={"inputs": [image], "outputs": [label]})
    deployment = world.serving()
    other = {"inputs": [image | {"dtype": "FP16"}], "outputs": []}
    ModelVersion.objects.filter(pk=world.version2.pk).update(signature=other)

    with refused(world, Invalid) as raised:
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=[{"weight": 10, "soak_seconds": 60, "min_requests": 0}],
        )
    assert (
        raised[0]
        .fields["version_id"]
        .startswith("input image is FP16, was FP32; output label was removed.")
    )


def test_with_karpenter_a_full_cluster_may_grow(world: World) -> None:
    Node.objects.update(is_schedulable=False)
    without = check_named(world, "Capacity now")
    features = {name: Feature(True) for name in ("kubernetes", "kserve", "karpenter")}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())

    growing = check_named(world, "Capacity now")

    assert (without.ok, growing.ok) == (False, None)
    assert growing.detail.endswith("Karpenter starts a node if a node pool allows g5.xlarge.")
    assert not growing.is_refusal
