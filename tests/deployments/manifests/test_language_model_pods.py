"""What pods of language models need on a real cluster: a user name, cache folders, a hub's token."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from portal.core.definitions import Rejected

CONTEXT = ManifestContext(
    team="vision",
    namespace="vision",
    deployment="chat",
    deployment_id=7,
    is_local_cluster=False,
    gateway_namespace="slipway-gateway",
    gateway_name="slipway",
    triton_image="triton:1",
    storage_image="storage:1",
    vllm_image="vllm:1",
)
ENGINES = ("kserve-vllm", "triton-vllm", "llm-inference-service")
SECRET = "serving.kserve.io/storageSecretName"


def made(engine: str, **llm: Any) -> dict[str, Manifest]:
    data = {
        "engine": engine,
        "instance_type": "g5.xlarge",
        "llm": {"hugging_face_id": "org/model", **llm},
    }
    spec = serving_spec.ServingSpec.from_json(data)
    served = ServedRevision(1, "chat", "chat:1", "ab" * 32, "s3://b/p/", spec)
    return {manifest["kind"]: manifest for manifest in revision.own(CONTEXT, served)}


def env_of_server(objects: dict[str, Manifest]) -> dict[str, dict[str, Any]]:
    if "InferenceService" in objects:
        container = objects["InferenceService"]["spec"]["predictor"]["model"]
    elif "LLMInferenceService" in objects:
        container = objects["LLMInferenceService"]["spec"]["template"]["containers"][0]
    else:
        container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names))
    return {variable["name"]: variable for variable in container["env"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_user_without_an_entry_in_the_image_has_a_name(engine: str) -> None:
    assert env_of_server(made(engine))["USER"]["value"] == "slipway"


@pytest.mark.parametrize("engine", ["kserve-vllm", "triton-vllm"])
def test_caches_go_where_the_user_may_write(engine: str) -> None:
    env = env_of_server(made(engine))

    assert env["HOME"]["value"] == "/tmp"
    assert env["HF_HOME"]["value"] in ("/tmp/huggingface", "/var/cache/huggingface")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_gated", [False, True])
def test_the_token_is_required_of_gated_weights_only(engine: str, *, is_gated: bool) -> None:
    key = env_of_server(made(engine, gated=is_gated))["HF_TOKEN"]["valueFrom"]["secretKeyRef"]

    assert key == {"name": "slipway-hugging-face", "key": "HF_TOKEN", "optional": not is_gated}


@pytest.mark.parametrize(
    ("engine", "kind"),
    [("kserve-vllm", "InferenceService"), ("llm-inference-service", "LLMInferenceService")],
)
def test_kserves_download_gets_the_token_of_gated_weights(engine: str, kind: str) -> None:
    gated, free = (made(engine, gated=value)[kind]["metadata"] for value in (True, False))

    assert gated["annotations"][SECRET] == "slipway-hugging-face"
    assert SECRET not in free["annotations"]


def test_one_secret_serves_the_download() -> None:
    with pytest.raises(Rejected) as refused:
        serving_spec.ServingSpec.from_json(
            {
                "engine": "kserve-vllm",
                "instance_type": "g5.xlarge",
                "llm": {"hugging_face_id": "org/model", "gated": True},
                "storage": {"secret": "s3-keys"},
            }
        )

    assert list(refused.value.fields) == ["llm.gated"]
    assert "KServe reads one Secret" in refused.value.fields["llm.gated"]


def test_in_standard_mode_kserve_publishes_no_address_of_its_own() -> None:
    standard = made("kserve-vllm")["InferenceService"]["metadata"]["labels"]

    assert standard["networking.kserve.io/visibility"] == "cluster-local"
