"""Deployments of versions by reference: which weights serve, their source, and the manifests."""

from __future__ import annotations

import pytest

from deployments.changes.selectors import evidence
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.manifests.domain.metadata import ServedRevision
from deployments.manifests.selectors import rendered, rendering
from deployments.models import ChangeRequest, Model, ModelVersion
from deployments.preflight.services import preflight
from deployments.spec.domain import serving_spec
from portal.core.errors import Conflict, Invalid
from tests.contract import schemas
from tests.deployments.external_weights import (
    CLAIM,
    COMMIT,
    IMAGE,
    NEXT,
    URI,
    draft,
    language_cluster,
    register,
)
from tests.deployments.manifests.test_manifests import all_manifests
from tests.deployments.refusals import refused
from tests.deployments.world import World

__all__ = ["language_cluster"]
pytestmark = pytest.mark.usefixtures("language_cluster")
STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 0}]


@pytest.mark.parametrize(
    ("engine", "uri", "where"),
    [
        ("kserve-vllm", URI, URI),
        ("kserve-vllm", CLAIM, CLAIM),
        ("kserve-sglang", URI, URI),
        ("kserve-sglang", CLAIM, CLAIM),
        ("kserve-tensorrt-llm", URI, URI),
        ("kserve-tensorrt-llm", CLAIM, CLAIM),
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

    change = requests.request_deploy(actor=world.member, draft=draft(world, version, engine=engine))

    assert change.revision is not None
    [workload] = [
        manifest
        for manifest in rendered.render_revision(change.revision).manifests
        if manifest["kind"] in ("InferenceService", "LLMInferenceService")
    ]
    spec = workload["spec"]
    if engine == "kserve-vllm":
        model = spec["predictor"]["model"]
        assert (model["storageUri"], model["command"][-1]) == (where, "/mnt/models")
    elif engine == "kserve-tensorrt-llm":
        assert spec["predictor"]["model"]["storageUri"] == where
    elif engine == "kserve-sglang":
        model = spec["predictor"]["model"]
        assert (model["storageUri"], model["args"][0]) == (where, "--model-path=/mnt/models")
    else:
        assert spec["model"]["uri"] == where
    notes = workload["metadata"]["annotations"]
    assert (notes["slipway.dev/version"], notes["slipway.dev/source"]) == ("chat:1", uri)
    assert "slipway.dev/sha256" not in notes


def test_triton_loads_external_weights_from_a_repository_in_the_portals_bucket(
    world: World,
) -> None:
    version = register(world)

    change = requests.request_deploy(
        actor=world.member, draft=draft(world, version, engine="triton-vllm")
    )

    assert change.revision is not None
    revision = rendered.render_revision(change.revision)
    served, files = revision.served, revision.files
    [engine] = [body for key, body in files.objects.items() if key.endswith("model.json")]
    assert served.storage_uri == f"s3://slipway-models/{files.prefix}"
    assert f'"revision": "{COMMIT}"' in engine.decode()


def test_external_weights_are_requested_approved_and_applied(world: World) -> None:
    version = register(world, parameters_millions=8190, dtype="bf16")
    change = requests.request_deploy(actor=world.member, draft=draft(world, version))

    with refused(world, Conflict, "evidence_changed"):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash="0" * 64)
    world.approved(change)

    assert change.revision is not None
    assert change.revision.spec["llm"]["hugging_face_id"] == f"org/chat:{COMMIT}"
    assert change.revision.spec["llm"]["parameters_millions"] == 8190
    [applied] = [one for key, one in world.cluster.objects.items() if key[0] == "InferenceService"]
    assert applied["spec"]["predictor"]["model"]["storageUri"] == URI


def test_the_evidence_of_a_request_covers_the_external_weights(world: World) -> None:
    change = requests.request_deploy(
        actor=world.member, draft=draft(world, register(world), engine="triton-vllm")
    )
    before = evidence.digest(change)

    # Nothing does this: a version never changes. If it did, no approval would hold.
    ModelVersion.objects.filter(source_uri=URI).update(source_uri=NEXT)

    after = ChangeRequest.objects.select_related(
        "deployment__cluster", "deployment__team", "revision__version__model__team"
    ).get(pk=change.pk)
    assert evidence.digest(after) != before


def test_a_canary_serves_the_weights_of_its_own_version(
    world: World,
) -> None:
    first = register(world, parameters_millions=8190)
    second = register(world, NEXT, parameters_millions=9000)
    change = world.approved(requests.request_deploy(actor=world.member, draft=draft(world, first)))
    world.cluster.make_ready("chat-r1")
    deployment = world.reconcile_now(deployment_of(change))

    canary = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=second.pk, steps=STEPS
    )

    assert canary.revision is not None
    llm = canary.revision.spec["llm"]
    assert llm["hugging_face_id"] == f"org/chat:{'cd34' * 10}"
    assert llm["parameters_millions"] == 9000
    # The uploaded weights of another version never come with it.
    uploaded = _uploaded(world, first.model)
    decisions.withdraw(actor=world.member, change_id=canary.pk)
    with refused(world, Invalid) as raised:
        requests.request_canary(
            actor=world.member, deployment_id=deployment.pk, version_id=uploaded.pk, steps=STEPS
        )
    assert "kserve-vllm cannot load chat.onnx" in raised[0].fields["version_id"]


def _uploaded(world: World, model: Model) -> ModelVersion:
    version = world.version1
    version.pk = None
    version.model, version.number, version.filename = model, 9, "chat.onnx"
    version.save(force_insert=True)
    return version


@pytest.mark.parametrize("uri", [URI, CLAIM, IMAGE])
@pytest.mark.parametrize("engine", serving_spec.LLM_ENGINES)
def test_a_strict_server_accepts_the_manifests(world: World, engine: str, uri: str) -> None:
    published = schemas.require_custom()
    version = register(world, uri, parameters_millions=8190)
    world.cluster.objects["PersistentVolumeClaim", "vision", "weights"] = {"metadata": {}}
    request = draft(world, version, engine=engine)
    if not preflight.check(actor=world.member, draft=request).can_submit:
        assert engine == serving_spec.TRITON_VLLM
        return
    change = requests.request_deploy(actor=world.member, draft=request)
    assert change.revision is not None
    served: ServedRevision = rendered.render_revision(change.revision).served

    visited = set()
    for manifest in all_manifests(rendering.context_of(deployment_of(change)), served):
        key = (manifest["apiVersion"], manifest["kind"])
        if schemas.is_built_in(manifest):
            schemas.check_built_in(manifest)
        elif key in published:
            errors = list(published[key].iter_errors(manifest))
            assert not errors, [(list(e.path), e.message) for e in errors]
        visited.add(manifest["kind"])
    assert visited & {"InferenceService", "LLMInferenceService", "Deployment"}
