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
    sglang_image="sglang:1",
    tensorrt_llm_image="trt:1",
)
OPENAI = ("kserve-vllm", "kserve-sglang", "kserve-tensorrt-llm", "llm-inference-service")
ENGINES = (*OPENAI, "triton-vllm")
SECRET = "serving.kserve.io/storageSecretName"


def made(engine: str, more: dict[str, Any] | None = None, /, **llm: Any) -> dict[str, Manifest]:
    data = {
        **(more or {}),
        "engine": engine,
        "instance_type": "g5.xlarge",
        "llm": {"hugging_face_id": "org/model", **llm},
    }
    spec = serving_spec.ServingSpec.from_json(data)
    served = ServedRevision(1, "chat", "chat:1", "ab" * 32, "s3://b/p/", spec)
    return {manifest["kind"]: manifest for manifest in revision.build_own(CONTEXT, served)}


def pod_of(objects: dict[str, Manifest]) -> dict[str, Any]:
    """The pod's fields as the workload states them; `model` of an InferenceService is its server."""
    if "InferenceService" in objects:
        pod: dict[str, Any] = objects["InferenceService"]["spec"]["predictor"]
        return pod
    template: dict[str, Any] = objects["LLMInferenceService"]["spec"]["template"]
    return template


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


@pytest.mark.parametrize(
    "engine", ["kserve-vllm", "kserve-sglang", "kserve-tensorrt-llm", "triton-vllm"]
)
def test_caches_go_where_the_user_may_write(engine: str) -> None:
    env = env_of_server(made(engine))

    assert env["HOME"]["value"] == "/tmp"
    assert env["HF_HOME"]["value"] in ("/tmp/huggingface", "/var/cache/huggingface")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_gated", [False, True])
def test_the_token_is_required_of_gated_weights_only(engine: str, *, is_gated: bool) -> None:
    key = env_of_server(made(engine, gated=is_gated))["HF_TOKEN"]["valueFrom"]["secretKeyRef"]

    assert key == {"name": "slipway-hugging-face", "key": "HF_TOKEN", "optional": not is_gated}


@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize("engine", OPENAI)
def test_the_download_gets_the_token_of_gated_weights(engine: str, *, is_gated: bool) -> None:
    objects = made(engine, gated=is_gated)
    workload = next(iter(objects.values()))

    [download] = pod_of(objects)["initContainers"]

    assert download["args"] == ["hf://org/model", "/mnt/models"]
    [token] = [item for item in download["env"] if item["name"] == "HF_TOKEN"]
    assert token["valueFrom"]["secretKeyRef"] == {
        "name": "slipway-hugging-face",
        "key": "HF_TOKEN",
        "optional": not is_gated,
    }
    assert SECRET not in workload["metadata"]["annotations"]


def test_kserves_cache_gets_the_token_of_gated_weights() -> None:
    cached = made("kserve-vllm", {"storage": {"model_cache": "cluster"}}, gated=True)

    service = cached["InferenceService"]
    assert service["metadata"]["annotations"][SECRET] == "slipway-hugging-face"
    assert "initContainers" not in pod_of(cached)


@pytest.mark.parametrize("engine", OPENAI)
def test_the_server_reads_the_volume_that_the_download_filled(engine: str) -> None:
    objects = made(engine)
    pod = pod_of(objects)
    server = pod.get("model") or pod["containers"][0]
    mount = {"name": "models", "mountPath": "/mnt/models"}

    assert mount in pod["initContainers"][0]["volumeMounts"]
    assert {**mount, "readOnly": True} in server["volumeMounts"]
    assert {"name": "models", "emptyDir": {}} in pod["volumes"]


@pytest.mark.parametrize("weights", ["pvc://weights/chat", "oci://registry/chat:1"])
@pytest.mark.parametrize("engine", OPENAI)
def test_weights_that_kserve_mounts_are_not_downloaded(engine: str, weights: str) -> None:
    pod = pod_of(made(engine, hugging_face_id="", artifact=weights))

    assert "initContainers" not in pod
    assert "models" not in {volume["name"] for volume in pod["volumes"]}


def test_kserves_own_download_of_llm_services_is_turned_off() -> None:
    on, off = (
        made("llm-inference-service", **llm)["LLMInferenceService"]["spec"]
        for llm in ({"hugging_face_id": "", "artifact": "pvc://weights/chat"}, {})
    )

    assert off["storageInitializer"] == {"enabled": False}
    assert "storageInitializer" not in on


def test_one_secret_serves_kserves_cache() -> None:
    with pytest.raises(Rejected) as refused:
        serving_spec.ServingSpec.from_json(
            {
                "engine": "kserve-vllm",
                "instance_type": "g5.xlarge",
                "llm": {"hugging_face_id": "org/model", "gated": True},
                "storage": {"secret": "s3-keys", "model_cache": "cluster"},
            }
        )

    assert list(refused.value.fields) == ["llm.gated"]
    assert "KServe's cache reads one Secret" in refused.value.fields["llm.gated"]


def test_in_standard_mode_kserve_publishes_no_address_of_its_own() -> None:
    standard = made("kserve-vllm")["InferenceService"]["metadata"]["labels"]

    assert standard["networking.kserve.io/visibility"] == "cluster-local"


@pytest.mark.parametrize(
    ("image", "grace", "command", "first"),
    [
        (
            "vllm/vllm-openai:v0.32.0",
            600,
            ["vllm", "serve", "/mnt/models"],
            "--served-model-name=chat",
        ),
        (
            "mirror/vllm@sha256:" + "ab" * 32,
            600,
            ["vllm", "serve", "/mnt/models"],
            "--served-model-name=chat",
        ),
        ("vllm/vllm-openai:v0.11.0", 600, None, "/mnt/models"),
        ("mirror/vllm@sha256:" + "ab" * 32, 0, None, "/mnt/models"),
    ],
)
def test_vllm_gets_its_model_before_any_option(
    image: str, grace: int, command: list[str] | None, first: str
) -> None:
    """KServe puts the runtime's --port before these arguments, and vLLM from 0.18 on then does not start. What may run
    already, of an older release or of a revision from before the grace was a setting, keeps its template.
    """
    more = {"image": image, "termination_grace_seconds": grace}

    model = pod_of(made("kserve-vllm", more))["model"]

    assert (model.get("command"), model["args"][0]) == (command, first)
