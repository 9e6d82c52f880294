"""A language model on Neuron devices: offered by the form, fit and price counted, requested, approved, applied."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import drafts, requests
from deployments.models import ChangeRequest, ModelVersion
from deployments.preflight.services import language_checks
from deployments.sizing.domain import declared_size
from deployments.sizing.domain.declared_size import DeclaredSize
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.models import InstancePrice
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Invalid
from tests import page as pages
from tests.deployments.changes.test_deploy_form_guards import first_page, summary_of, text_of
from tests.deployments.changes.test_new_deployment import URL, check, fields_of, send
from tests.deployments.external_weights import (
    NEXT,
    checked,
    draft,
    language_cluster,
    named,
    register,
)
from tests.deployments.refusals import refused
from tests.deployments.world import World
from tests.fleet.neuron_nodes import neuron_node

__all__ = ["language_cluster"]
DEVICE = "aws.amazon.com/neuron"
ON_NEURON: dict[str, Any] = {
    "instance_type": "inf2.xlarge",
    "gpu_resource": DEVICE,
    "llm": {"max_model_len": 4096, "max_num_seqs": 4, "prefix_caching": False},
}
SHARE = f"inf2.xlarge|{DEVICE}|1"


@pytest.fixture
def version(world: World, language_cluster: None) -> ModelVersion:
    """Two nodes of inf2.xlarge, and a model that fits on them."""
    nodes = [
        neuron_node(name, instance_type="inf2.xlarge", devices=1, cpu="3920m", memory="14162Mi")
        for name in ("inf-1", "inf-2")
    ]
    record.record(
        cluster_id=world.cluster_id, changes=ObservedChanges(nodes=nodes, pods=[]), at=clock.now()
    )
    row = InstancePrice.objects.get(instance_type="g5.xlarge")
    row.pk, row.instance_type, row.gpu_name = None, "inf2.xlarge", "inferentia2"
    row.usd_per_hour_amount, row.gpu_memory_mib = Decimal("0.7582"), 32768
    row.save()
    return register(world, parameters_millions=1500, dtype="bf16")


def test_fit_and_price_are_those_of_the_devices(world: World, version: ModelVersion) -> None:
    result = checked(world, version, **ON_NEURON, min_replicas=2, max_replicas=2)

    assert named(result, "Capacity now").detail == "2 of this size fit now."
    assert result.cost.per_hour == Decimal("1.516400")
    more = checked(world, version, **ON_NEURON, min_replicas=3, max_replicas=3)
    assert named(more, "Capacity now").detail == (
        "2 of 3 fit now: not enough Neuron devices or CPU or memory (2 of 2 Neuron devices free, 7.84 of 7.84 cores "
        "free, 27.6 Gi of 27.6 Gi memory free on 2 nodes). Karpenter starts a node if a node pool allows inf2.xlarge."
    )


def test_quota_names_what_it_counts(world: World, version: ModelVersion) -> None:
    def quota(**settings: Any) -> Any:
        return named(checked(world, version, **settings), "Quota")

    world.team.quota_gpus = 2
    world.team.save()
    version.model.team.refresh_from_db()

    assert (
        quota(**ON_NEURON, max_replicas=2).detail == "2 of 2 Neuron devices of vision after this."
    )
    over = quota(**ON_NEURON, max_replicas=3)
    assert (over.ok, over.detail) == (False, "3 of 2 Neuron devices of vision after this.")
    assert over.fix.startswith("2 Neuron devices are left: lower max replicas to 2,")
    world.serving()
    both = quota(**ON_NEURON, max_replicas=2)
    assert (both.ok, both.detail) == (False, "3 of 2 GPUs and Neuron devices of vision after this.")
    assert both.fix.startswith("1 Neuron device is left: lower max replicas to 1,")


def test_a_request_is_approved_and_applied_with_devices(
    world: World, version: ModelVersion
) -> None:
    change = requests.request_deploy(actor=world.member, draft=draft(world, version, **ON_NEURON))
    world.approved(change)

    [applied] = [one for key, one in world.cluster.objects.items() if key[0] == "InferenceService"]
    model = applied["spec"]["predictor"]["model"]
    assert model["resources"]["limits"][DEVICE] == "1"
    assert model["image"].startswith("public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0")
    assert "--tensor-parallel-size=2" in model["args"]


def test_heads_are_shared_by_cores(
    world: World, version: ModelVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared_size, "from_version", lambda *_: DeclaredSize(heads=15))
    spec = ServingSpec.from_json({"engine": "kserve-vllm", **ON_NEURON})
    on_gpu = spec.replace(instance_type="g5.xlarge", gpu_resource="nvidia.com/gpu")
    assert spec.llm is not None

    [check] = language_checks.check_limits(version, spec, spec.llm)

    assert (
        check.detail
        == f"{version.label} has 15 attention heads, which 2 NeuronCores cannot share evenly."
    )
    assert language_checks.check_limits(version, on_gpu, spec.llm) == []


@pytest.fixture
def client(version: ModelVersion, world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def serving(world: World, client: Client, version: ModelVersion, engine: str) -> Any:
    page = client.get(f"{URL}?version={version.pk}")
    return check(client, page, engine=engine, llm_parameters_millions="1500")


def test_devices_are_offered_to_the_server_that_takes_them_and_never_chosen_for_anyone(
    world: World, client: Client, version: ModelVersion
) -> None:
    vllm = serving(world, client, version, "kserve-vllm")
    sglang = serving(world, client, version, "kserve-sglang")

    assert fields_of(vllm)["share"] == "g5.xlarge|nvidia.com/gpu|1"
    text = text_of(vllm)
    assert SHARE in text
    assert "GPU or Neuron device" in text
    assert "recommended: cheapest GPU with free capacity" in text
    assert "only for architectures that the Neuron compiler supports" in text
    assert "neuron" not in text_of(sglang)
    assert "neuron" not in text_of(first_page(world, client))


def test_the_form_says_what_neuron_needs_and_then_sends_the_request(
    world: World, client: Client, version: ModelVersion
) -> None:
    page = serving(world, client, version, "kserve-vllm")
    typed = {"name": "chat", "network_access": "open", "share": SHARE}
    held = check(client, page, **typed)
    assert held.status_code == 422
    assert "Turn prefix caching off." in text_of(held)
    assert "Enter a number, for example 4." in text_of(held)

    fields = {**fields_of(held), "llm_max_model_len": "4096", "llm_max_num_seqs": "4"}
    # What a browser sends of a switch that is off.
    fields["llm_prefix_caching"] = "off"
    checked_page = client.post(URL, {**fields, "go": "check"})
    sent = send(client, checked_page)

    assert summary_of(pages.page(checked_page), "GPU and cluster") == (
        "1 Neuron device of inf2.xlarge on eks-test"
    )
    change = ChangeRequest.objects.get()
    assert sent.status_code == 302
    assert change.revision is not None
    assert change.revision.spec["gpu_resource"] == DEVICE
    assert change.gpu_name == "Inferentia2"


def test_a_guard_of_gpu_memory_is_refused_with_what_to_remove(
    world: World, version: ModelVersion
) -> None:
    change = requests.request_deploy(actor=world.member, draft=draft(world, version, **ON_NEURON))
    world.approved(change)
    deployment = deployment_of(change)
    world.cluster.make_ready("chat-r1")
    world.reconcile_now(deployment)
    following = register(world, NEXT)
    with refused(world, Invalid) as raised:
        drafts.canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=following.pk,
            steps=[{"weight": 10, "soak_seconds": 60, "min_requests": 0}],
            plan={"guards": [{"metric": "gpu_memory", "max": 30}]},
        )

    assert "runs on Neuron devices. Remove the guard gpu_memory." in raised[0].message
