"""Warnings and refusals for a version by reference before it is deployed."""

from __future__ import annotations

import pytest

from deployments.changes.services import requests
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.preflight.services import gpu_advice, preflight
from deployments.preflight.services.gpu_advice import Load
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.errors import Invalid, QuotaExceeded
from tests.deployments.external_weights import (
    CLAIM,
    COMMIT,
    IMAGE,
    NEXT,
    URI,
    checked,
    draft,
    language_cluster,
    named,
    register,
)
from tests.deployments.refusals import refused
from tests.deployments.world import World

__all__ = ["language_cluster"]
pytestmark = pytest.mark.usefixtures("language_cluster")
_OWN = "kserve-vllm or kserve-sglang or kserve-tensorrt-llm"


@pytest.mark.parametrize(
    ("uri", "engine", "fix"),
    [
        (
            URI,
            "kserve-triton",
            f"{_OWN} or triton-vllm or llm-inference-service",
        ),
        (URI, "triton", f"{_OWN} or triton-vllm or llm-inference-service"),
        (CLAIM, "triton-vllm", f"{_OWN} or llm-inference-service"),
        (IMAGE, "triton-vllm", f"{_OWN} or llm-inference-service"),
    ],
)
def test_an_engine_that_cannot_load_it_is_refused_with_those_that_can(
    world: World, uri: str, engine: str, fix: str
) -> None:
    version = register(world, uri)

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=draft(world, version, engine=engine))

    assert raised[0].fields["version_id"].endswith(f"Choose {fix}.")


def test_other_weights_than_the_versions_are_refused_at_their_field(world: World) -> None:
    version = register(world)

    with refused(world, Invalid) as raised:
        requests.request_deploy(
            actor=world.member,
            draft=draft(world, version, llm={"hugging_face_id": "org/other"}),
        )
    same = checked(world, version, llm={"hugging_face_id": f"org/chat:{COMMIT}"})

    assert list(raised[0].fields) == ["llm.hugging_face_id"]
    assert f"are at {URI}" in raised[0].message
    assert same.can_submit


def test_a_language_engine_without_any_weights_is_refused(world: World) -> None:
    data = {"engine": "triton-vllm", "instance_type": "g5.xlarge", "network": {"access": "open"}}
    asked = DeployDraft(world.version1.pk, world.cluster_id, "chat", ServingSpec.from_json(data))

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=asked)

    assert "triton-vllm cannot load detector.onnx" in raised[0].fields["version_id"]


def test_what_may_change_after_the_approval_is_reported_before(world: World) -> None:
    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}
    pinned = named(checked(world, register(world)), "Artifact")
    claim = named(checked(world, register(world, CLAIM)), "Artifact")
    tag = named(checked(world, register(world, "oci://ghcr.io/org/chat:2")), "Artifact")

    assert (pinned.ok, pinned.fix) == (None, "")
    assert [one.detail.endswith("They can change after approval.") for one in (claim, tag)] == [
        True,
        True,
    ]
    assert "add the digest" in tag.fix


def test_a_volume_that_is_not_there_is_refused(world: World) -> None:
    version = register(world, CLAIM)

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=draft(world, version))
    assert "PersistentVolumeClaim weights does not exist" in raised[0].message

    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}
    assert checked(world, version).can_submit


def test_an_archived_reference_cannot_be_deployed(world: World) -> None:
    version = register(world)
    ModelVersion.objects.filter(pk=version.pk).update(state="archived")

    with refused(world, Invalid, "version_not_ready"):
        requests.request_deploy(actor=world.member, draft=draft(world, version))


def test_what_is_stated_feeds_the_adviser_and_the_memory_check(world: World) -> None:
    small = register(world, parameters_millions=8190, dtype="int4")
    large = register(world, NEXT, parameters_millions=8190, dtype="fp32")
    unsaid = register(world, "hf://org/chat:main")

    advice = [
        gpu_advice.advise(
            actor=world.member, version_id=one.pk, cluster_id=world.cluster_id, load=Load()
        )
        for one in (small, large)
    ]

    # 8.19 billion at 4 and at 32 bits.
    assert [offer.need.terms[0].mib for offer in advice] == [3906, 31243]
    assert named(checked(world, small), "GPU memory").ok is True
    assert named(checked(world, large), "GPU memory").ok is False
    with pytest.raises(Invalid, match="is not set"):
        gpu_advice.advise(
            actor=world.member, version_id=unsaid.pk, cluster_id=world.cluster_id, load=Load()
        )


def test_more_context_than_declared_is_reported(world: World) -> None:
    version = register(world, context_length=8192)

    more = checked(world, version, llm={"max_model_len": 16384})
    fits = checked(world, version, llm={"max_model_len": 8192})

    check = named(more, "Context")
    assert (check.ok, check.is_refusal) == (False, False)
    assert check.detail == "16,384 tokens are requested, but the context length of chat:1 is 8,192."
    assert "Context" not in [check.name for check in fits.checks]


def test_quota_counts_its_gpus(world: World) -> None:
    version = register(world)

    with refused(world, QuotaExceeded) as raised:
        requests.request_deploy(
            actor=world.member,
            draft=draft(world, version, min_replicas=9, max_replicas=9),
        )

    assert "9 of 8 GPUs" in raised[0].message


def test_it_is_not_served_beside_an_uploaded_model(world: World) -> None:
    register(world)
    requested = world.draft(
        additional_models=(serving_spec.AdditionalModel(model="chat", version=1),)
    )

    result = preflight.check(actor=world.member, draft=requested)

    assert named(result, "Multi-model serving").detail == (
        f"chat:1 is a reference to {URI}. Multi-model serving needs uploaded versions."
    )
