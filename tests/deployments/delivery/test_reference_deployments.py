"""Deployments of versions by reference: which weights serve, who is asked, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.domain import specs
from deployments.domain.manifests.parts import Served
from deployments.domain.preflight import Check, DeployDraft, Preflight
from deployments.models import ChangeRequest, Model, ModelVersion
from deployments.selectors import plans
from deployments.services import changes, preflight, references, sizing
from deployments.services.references import ReferenceDraft
from deployments.services.sizing import Load
from fleet.domain.capabilities import Capabilities, Feature
from fleet.domain.capability_words import WORDS
from fleet.models import Cluster
from portal.core.errors import Conflict, Invalid, QuotaExceeded
from tests.contract import schemas
from tests.deployments.delivery.conftest import World
from tests.deployments.delivery.refusals import refused
from tests.deployments.delivery.test_manifests import all_manifests

COMMIT = "ab12" * 10
URI = f"hf://org/chat:{COMMIT}"
NEXT = f"hf://org/chat:{'cd34' * 10}"
IMAGE = f"oci://ghcr.io/org/chat:2@sha256:{'ef' * 32}"
CLAIM = "pvc://weights/chat/1"
STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 0}]


def register(world: World, uri: str = URI, **stated: Any) -> ModelVersion:
    return references.register(
        actor=world.member,
        team_slug="vision",
        model_name="chat",
        draft=ReferenceDraft(uri, metadata=stated),
    )


def draft(world: World, version: ModelVersion, **changed: Any) -> DeployDraft:
    data = {"engine": "kserve-vllm", "instance_type": "g5.xlarge", **changed}
    return DeployDraft(version.pk, world.cluster_id, "chat", specs.from_json(data))


def checked(world: World, version: ModelVersion, **changed: Any) -> Preflight:
    return preflight.check(actor=world.member, draft=draft(world, version, **changed))


def named(found: Preflight, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


@pytest.fixture(autouse=True)
def language_cluster(world: World) -> None:
    features = {name: Feature(name != "kserve-knative") for name in WORDS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())


@pytest.mark.parametrize(
    ("engine", "uri", "where"),
    [
        ("kserve-vllm", URI, URI),
        ("kserve-vllm", CLAIM, CLAIM),
        ("kserve-vllm", IMAGE, IMAGE),
        ("llm-inference-service", URI, URI),
        ("llm-inference-service", IMAGE, IMAGE),
    ],
)
def test_the_weights_are_those_of_the_version(
    world: World, engine: str, uri: str, where: str
) -> None:
    version = register(world, uri)
    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}

    change = changes.request_deploy(actor=world.member, draft=draft(world, version, engine=engine))

    assert change.revision is not None
    [workload] = [
        one
        for one in plans.manifests_of(change.revision)
        if one["kind"] in ("InferenceService", "LLMInferenceService")
    ]
    spec = workload["spec"]
    if engine == "kserve-vllm":
        model = spec["predictor"]["model"]
        assert (model["storageUri"], model["args"][0]) == (where, "/mnt/models")
    else:
        assert spec["model"]["uri"] == where
    notes = workload["metadata"]["annotations"]
    assert (notes["slipway.dev/version"], notes["slipway.dev/source"]) == ("chat:1", uri)
    assert "slipway.dev/sha256" not in notes


def test_triton_loads_it_by_id_from_a_repository_in_the_portals_own_bucket(world: World) -> None:
    version = register(world)

    change = changes.request_deploy(
        actor=world.member, draft=draft(world, version, engine="triton-vllm")
    )

    assert change.revision is not None
    served = plans.served_of(change.revision)
    files = plans.files_for(version=version, spec=served.spec)
    [engine] = [body for key, body in files.objects.items() if key.endswith("model.json")]
    assert served.storage_uri == f"s3://slipway-models/{files.prefix}"
    assert f'"revision": "{COMMIT}"' in engine.decode()


def test_it_is_requested_approved_by_another_and_applied(world: World) -> None:
    version = register(world, parameters_millions=8190, dtype="bf16")
    change = changes.request_deploy(actor=world.member, draft=draft(world, version))

    with refused(world, Conflict, "evidence_changed"):
        changes.approve(actor=world.lead, change_id=change.pk, evidence_hash="0" * 64)
    world.approved(change)

    assert change.revision is not None
    assert change.revision.spec["llm"]["hugging_face_id"] == f"org/chat:{COMMIT}"
    assert change.revision.spec["llm"]["parameters_millions"] == 8190
    [applied] = [one for key, one in world.cluster.objects.items() if key[0] == "InferenceService"]
    assert applied["spec"]["predictor"]["model"]["storageUri"] == URI


def test_the_evidence_of_a_request_covers_the_reference(world: World) -> None:
    change = changes.request_deploy(
        actor=world.member, draft=draft(world, register(world), engine="triton-vllm")
    )
    before = plans.evidence_of(change)

    # Nothing does this: a version never changes. If it did, no approval would hold.
    ModelVersion.objects.filter(source_uri=URI).update(source_uri=NEXT)

    after = ChangeRequest.objects.select_related(
        "deployment__cluster", "deployment__team", "revision__version__model__team"
    ).get(pk=change.pk)
    assert plans.evidence_of(after) != before


@pytest.mark.parametrize(
    ("uri", "engine", "fix"),
    [
        (URI, "kserve-triton", "kserve-vllm or triton-vllm or llm-inference-service"),
        (URI, "triton", "kserve-vllm or triton-vllm or llm-inference-service"),
        (CLAIM, "triton-vllm", "kserve-vllm or llm-inference-service"),
        (IMAGE, "triton-vllm", "kserve-vllm or llm-inference-service"),
    ],
)
def test_an_engine_that_cannot_load_it_is_refused_with_those_that_can(
    world: World, uri: str, engine: str, fix: str
) -> None:
    version = register(world, uri)

    with refused(world, Invalid) as raised:
        changes.request_deploy(actor=world.member, draft=draft(world, version, engine=engine))

    assert raised[0].fields["version_id"].endswith(f"Choose {fix}.")


def test_other_weights_than_the_versions_are_refused_at_their_field(world: World) -> None:
    version = register(world)

    with refused(world, Invalid) as raised:
        changes.request_deploy(
            actor=world.member,
            draft=draft(world, version, llm={"hugging_face_id": "org/other"}),
        )
    same = checked(world, version, llm={"hugging_face_id": f"org/chat:{COMMIT}"})

    assert list(raised[0].fields) == ["llm.hugging_face_id"]
    assert f"lie at {URI}" in raised[0].message
    assert same.can_submit


def test_a_language_engine_without_any_weights_is_refused(world: World) -> None:
    data = {"engine": "triton-vllm", "instance_type": "g5.xlarge"}
    asked = DeployDraft(world.version1.pk, world.cluster_id, "chat", specs.from_json(data))

    with refused(world, Invalid) as raised:
        changes.request_deploy(actor=world.member, draft=asked)

    assert "triton-vllm cannot load detector.onnx" in raised[0].fields["version_id"]


def test_what_may_change_after_the_approval_is_told_before_it(world: World) -> None:
    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}
    pinned = named(checked(world, register(world)), "Artifact")
    claim = named(checked(world, register(world, CLAIM)), "Artifact")
    tag = named(checked(world, register(world, "oci://ghcr.io/org/chat:2")), "Artifact")

    assert (pinned.ok, pinned.fix) == (None, "")
    assert [one.detail.endswith("They may change after the approval.") for one in (claim, tag)] == [
        True,
        True,
    ]
    assert "add the digest" in tag.fix


def test_a_volume_that_is_not_there_is_refused(world: World) -> None:
    version = register(world, CLAIM)

    with refused(world, Invalid) as raised:
        changes.request_deploy(actor=world.member, draft=draft(world, version))
    assert "there is no PersistentVolumeClaim weights" in raised[0].message

    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}
    assert checked(world, version).can_submit


def test_an_archived_reference_cannot_be_deployed(world: World) -> None:
    version = register(world)
    ModelVersion.objects.filter(pk=version.pk).update(state="archived")

    with refused(world, Invalid, "version_not_ready"):
        changes.request_deploy(actor=world.member, draft=draft(world, version))


def test_what_is_stated_feeds_the_adviser_and_the_memory_check(world: World) -> None:
    small = register(world, parameters_millions=8190, dtype="int4")
    large = register(world, NEXT, parameters_millions=8190, dtype="fp32")
    unsaid = register(world, "hf://org/chat:main")

    advice = [
        sizing.advise(
            actor=world.member, version_id=one.pk, cluster_id=world.cluster_id, load=Load()
        )
        for one in (small, large)
    ]

    # 8.19 billion at 4 and at 32 bits.
    assert [one.need.terms[0].mib for one in advice] == [3906, 31243]
    assert named(checked(world, small), "GPU memory").ok is True
    assert named(checked(world, large), "GPU memory").ok is False
    with pytest.raises(Invalid, match="was not stated"):
        sizing.advise(
            actor=world.member, version_id=unsaid.pk, cluster_id=world.cluster_id, load=Load()
        )


def test_more_context_than_the_model_is_stated_to_take_is_told(world: World) -> None:
    version = register(world, context_length=8192)

    more = checked(world, version, llm={"max_model_len": 16384})
    fits = checked(world, version, llm={"max_model_len": 8192})

    check = named(more, "Context")
    assert (check.ok, check.is_refusal) == (False, False)
    assert check.detail == "16,384 tokens are asked for; chat:1 is stated to take 8,192."
    assert "Context" not in [one.name for one in fits.checks]


def test_quota_counts_its_gpus(world: World) -> None:
    version = register(world)

    with refused(world, QuotaExceeded) as raised:
        changes.request_deploy(
            actor=world.member,
            draft=draft(world, version, min_replicas=9, max_replicas=9),
        )

    assert "9 of 8 GPUs" in raised[0].message


def test_a_canary_serves_the_weights_of_its_own_version(
    world: World,
) -> None:
    first = register(world, parameters_millions=8190)
    second = register(world, NEXT, parameters_millions=9000)
    change = world.approved(changes.request_deploy(actor=world.member, draft=draft(world, first)))
    world.cluster.make_ready("chat-r1")
    deployment = world.look(change.deployment)

    canary = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=second.pk, steps=STEPS
    )

    assert canary.revision is not None
    llm = canary.revision.spec["llm"]
    assert llm["hugging_face_id"] == f"org/chat:{'cd34' * 10}"
    assert llm["parameters_millions"] == 9000
    # The uploaded weights of another version never come with it.
    uploaded = _uploaded(world, first.model)
    changes.withdraw(actor=world.member, change_id=canary.pk)
    with refused(world, Invalid) as raised:
        changes.request_canary(
            actor=world.member, deployment_id=deployment.pk, version_id=uploaded.pk, steps=STEPS
        )
    assert "kserve-vllm cannot load chat.onnx" in raised[0].fields["version_id"]


def _uploaded(world: World, model: Model) -> ModelVersion:
    version = world.version1
    version.pk = None
    version.model, version.number, version.filename = model, 9, "chat.onnx"
    version.save(force_insert=True)
    return version


def test_it_is_not_packed_beside_an_uploaded_model(world: World) -> None:
    register(world)
    asked = world.draft(packed=(specs.Packed(model="chat", version=1),))

    found = preflight.check(actor=world.member, draft=asked)

    assert named(found, "Packed models").detail == (
        f"chat:1 lies at {URI}: only uploaded versions are packed."
    )


@pytest.mark.parametrize("uri", [URI, CLAIM, IMAGE])
@pytest.mark.parametrize("engine", specs.LLM_ENGINES)
def test_its_manifests_are_taken_by_a_strict_server(world: World, engine: str, uri: str) -> None:
    published = schemas.require_custom()
    version = register(world, uri, parameters_millions=8190)
    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}
    asked = draft(world, version, engine=engine)
    if not preflight.check(actor=world.member, draft=asked).can_submit:
        assert engine == specs.TRITON_VLLM
        return
    change = changes.request_deploy(actor=world.member, draft=asked)
    assert change.revision is not None
    served: Served = plans.served_of(change.revision)

    seen = set()
    for manifest in all_manifests(plans.place_of(change.deployment), served):
        key = (manifest["apiVersion"], manifest["kind"])
        if schemas.is_built_in(manifest):
            schemas.check_built_in(manifest)
        elif key in published:
            errors = list(published[key].iter_errors(manifest))
            assert not errors, [(list(e.path), e.message) for e in errors]
        seen.add(manifest["kind"])
    assert seen & {"InferenceService", "LLMInferenceService", "Deployment"}
