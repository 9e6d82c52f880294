"""An uploaded folder of weights is served by vLLM and SGLang from the portal's own storage."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.changes.web import draft as drafts
from deployments.changes.web import engine_choices, new_deployment_cards
from deployments.manifests.selectors import rendered
from deployments.models import Model, ModelVersion
from deployments.registry.domain.formats import hugging_face
from deployments.registry.domain.formats.format import Context
from deployments.registry.domain.hugging_face import reading
from deployments.states import VersionState
from portal.core import clock
from portal.core.errors import Invalid
from tests import recorded
from tests.contract import schemas
from tests.deployments.external_weights import checked, draft, language_cluster, named
from tests.deployments.refusals import refused
from tests.deployments.registry.test_hugging_face import artifact_of
from tests.deployments.world import World
from tests.fixtures import language_models as folders

__all__ = ["language_cluster"]
pytestmark = pytest.mark.usefixtures("language_cluster")
PREFIX = "repositories/vision/chat/1/abcdefabcdef-abcdefabcdef/"
OPENAI = ("kserve-vllm", "kserve-sglang", "kserve-tensorrt-llm", "llm-inference-service")


def uploaded(world: World, **config: Any) -> ModelVersion:
    artifact = artifact_of(folders.folder(**config))
    facts = reading.read({"main": "chat/config.json"}, artifact)
    context = Context("chat", "chat/config.json", tuple(artifact.sizes), max_batch_size=32)
    assert hugging_face.HUGGING_FACE.reading is not None
    inspection = hugging_face.HUGGING_FACE.reading.conclude(facts, context)
    at = clock.now()
    model = Model.objects.create(
        team=world.team, name="chat", created_by=world.member, created_at=at, changed_at=at
    )
    for target, path in inspection.layout.items():
        world.store.sizes[PREFIX + target] = artifact.sizes[path]
    return ModelVersion.objects.create(
        model=model,
        number=1,
        state=VersionState.READY,
        format="hugging_face",
        filename="chat",
        declared_size_bytes=sum(artifact.sizes.values()),
        size_bytes=sum(artifact.sizes.values()),
        bucket="slipway-models",
        upload_prefix="uploads/chat/",
        sha256="5" * 64,
        repository_prefix=PREFIX,
        laid_out=recorded.rows_of(world.store, PREFIX, digest=lambda _: "ab" * 32),
        signature=inspection.signature.to_json()
        | {"vram_parts_mib": inspection.estimate.to_json()},
        vram_estimate_mib=inspection.estimate.total_mib,
        created_by=world.member,
        created_at=at,
    )


def manifests_of(world: World, version: ModelVersion, **changed: Any) -> list[dict[str, Any]]:
    change = requests.request_deploy(actor=world.member, draft=draft(world, version, **changed))
    assert change.revision is not None
    return list(rendered.render_revision(change.revision).manifests)


def pod_of(manifests: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod and its server."""
    for manifest in manifests:
        if manifest["kind"] == "InferenceService":
            predictor = manifest["spec"]["predictor"]
            return predictor, predictor["model"]
        if manifest["kind"] == "LLMInferenceService":
            template = manifest["spec"]["template"]
            return template, template["containers"][0]
    raise AssertionError("no workload")


@pytest.mark.parametrize("engine", OPENAI)
def test_pods_download_compare_and_load_the_versions_own_files(world: World, engine: str) -> None:
    version = uploaded(world)

    pod, server = pod_of(manifests_of(world, version, engine=engine))

    download, check = pod["initContainers"]
    assert download["args"] == [f"s3://slipway-models/{PREFIX}", "/mnt/models"]
    assert not [item for item in download["env"] if item["name"] == "HF_TOKEN"]
    record = next(item["value"] for item in check["env"] if item["name"] == "SLIPWAY_DIGESTS")
    assert [line.split("  ")[1] for line in record.splitlines()] == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    if engine == "kserve-vllm":
        assert server["command"] == ["vllm", "serve", "/mnt/models"]
    if engine == "kserve-sglang":
        assert server["args"][0] == "--model-path=/mnt/models"


@pytest.mark.parametrize("engine", OPENAI)
@pytest.mark.parametrize("cache", ["none", "volume"])
def test_the_published_schemas_accept_them(world: World, engine: str, cache: str) -> None:
    published = schemas.require_custom()
    world.cluster.objects["PersistentVolumeClaim", "vision", "models"] = {
        "metadata": {},
        "spec": {"accessModes": ["ReadWriteMany"]},
        "status": {"accessModes": ["ReadWriteMany"], "phase": "Bound"},
    }
    claim = "models" if cache == "volume" else ""

    made = manifests_of(
        world,
        uploaded(world),
        engine=engine,
        storage={"model_cache": cache, "volume_claim": claim},
    )

    for manifest in made:
        if schemas.is_built_in(manifest):
            schemas.check_built_in(manifest)
        else:
            published[manifest["apiVersion"], manifest["kind"]].validate(manifest)


def test_a_volume_compares_them_too(world: World) -> None:
    world.cluster.objects["PersistentVolumeClaim", "vision", "models"] = {
        "metadata": {},
        "spec": {"accessModes": ["ReadWriteMany"]},
        "status": {"accessModes": ["ReadWriteMany"], "phase": "Bound"},
    }
    storage = {"model_cache": "volume", "volume_claim": "models"}

    pod, _ = pod_of(manifests_of(world, uploaded(world), storage=storage))

    [download] = pod["initContainers"]
    env = {item["name"]: item.get("value", "") for item in download["env"]}
    assert "  model.safetensors\n" in env["SLIPWAY_DIGESTS"]


def test_the_size_comes_from_the_files(world: World) -> None:
    version = uploaded(world)

    result = checked(world, version)

    assert named(result, "Artifact").detail == "5 verified files are in the serving repository."
    # Weights 1 MiB, cache 2, workspace 512, runtime 1,024.
    assert named(result, "GPU memory").detail.startswith("1,552 MiB estimated")
    change = requests.request_deploy(actor=world.member, draft=draft(world, version))
    assert change.revision is not None
    assert change.revision.spec["llm"]["parameters_millions"] == 1


@pytest.mark.parametrize(
    ("engine", "changed", "name", "detail"),
    [
        ("triton", {}, "Artifact", "triton cannot load chat."),
        ("kserve-triton", {}, "Artifact", "kserve-triton cannot load chat."),
        ("triton-vllm", {}, "Artifact", "triton-vllm cannot load chat."),
        ("kserve-vllm", {"llm": {"nodes": 2}}, "Artifact", "kserve-vllm splits only"),
        ("kserve-vllm", {"llm": {"max_model_len": 4096}}, "Context", "4,096 tokens are requested"),
        (
            "kserve-sglang",
            {"llm": {"tensor_parallel": 16}, "gpus": 16},
            "Tensor parallel",
            "8 attention heads",
        ),
    ],
)
def test_what_no_server_would_start_is_refused(
    world: World, engine: str, changed: dict[str, Any], name: str, detail: str
) -> None:
    version = uploaded(world)

    check = named(checked(world, version, engine=engine, **changed), name)

    assert check.ok is False
    assert check.is_blocking
    assert check.detail.startswith(detail) or detail in check.detail
    assert check.fix
    with refused(world, Invalid):
        requests.request_deploy(
            actor=world.member, draft=draft(world, version, engine=engine, **changed)
        )


@pytest.mark.parametrize("field", [{"hugging_face_id": "org/other"}, {"artifact": "pvc://other"}])
def test_other_weights_than_the_versions_are_refused(world: World, field: dict[str, str]) -> None:
    version = uploaded(world)

    with refused(world, Invalid):
        requests.request_deploy(actor=world.member, draft=draft(world, version, llm=field))


def test_changed_files_in_the_bucket_are_refused(world: World) -> None:
    version = uploaded(world)
    world.store.overwrite(f"{PREFIX}model.safetensors")

    check = named(checked(world, version), "Artifact")

    assert (check.ok, check.is_blocking) == (False, True)
    assert "model.safetensors" in check.detail


def test_the_form_offers_its_engines_and_shows_what_was_read(world: World) -> None:
    version = uploaded(world)
    typed = {"version": str(version.pk), "cluster": str(world.cluster_id)}

    built = drafts.build(world.member, world.team, typed)

    assert built.data["engine"] == "kserve-vllm"
    offered = {
        choice.name: choice.reason
        for choice in engine_choices.engine_choices(built.cluster, version)
    }
    assert {name for name, reason in offered.items() if not reason} == set(OPENAI)
    weights = new_deployment_cards.weights_of(version)
    assert weights is not None
    assert (weights.uri, weights.size.context_length) == (f"s3://slipway-models/{PREFIX}", 2048)
    assert built.advice is not None
    assert built.advice.need.mib_on(1) == 1552
