"""Which environment variables a request may set: a list of what is allowed, by engine."""

from __future__ import annotations

import pytest

from deployments.spec.domain import environment_variables, serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected

_REFUSED = (
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_INJECTION64_PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "OPENSSL_CONF",
    "SSL_CERT_FILE",
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HF_HOME",
    "HTTP_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "NO_PROXY",
    "PATH",
    "HOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "AWS_ACCESS_KEY_ID",
    "AWS_ENDPOINT_URL",
    "STORAGE_URI",
    "OMP_TOOL_LIBRARIES",
    "NCCL_NET_PLUGIN",
    "ORT_TENSORRT_ENGINE_DECRYPTION_LIB_PATH",
    "TRITON_PTXAS_PATH",
    "VLLM_PLUGINS",
    "VLLM_SERVER_DEV_MODE",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
    "VLLM_ADDITIONAL_ARGS",
    "KUBERNETES_SERVICE_HOST",
    "APP_",
    "app_mode",
    "A",
)


def _spec(engine: str, env: dict[str, str]) -> serving_spec.ServingSpec:
    llm = {"hugging_face_id": "a/b"} if engine in serving_spec.LLM_ENGINES else None
    return ServingSpec.from_json(
        {"engine": engine, "instance_type": "g5.xlarge", "env": env, "llm": llm}
    )


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_what_loads_code_redirects_or_shows_other_gpus_is_refused_by_every_engine(
    engine: str,
) -> None:
    refusals = {name: _refusal(engine, name) for name in _REFUSED}

    assert [
        name for name in refusals if not refusals[name].startswith(f"{name} is set by the plat")
    ] == []


def _refusal(engine: str, name: str) -> str:
    """Empty when it was taken."""
    try:
        _spec(engine, {name: "x"})
    except Rejected as refusal:
        return refusal.fields["env"]
    return ""


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_what_is_listed_for_the_engine_and_a_teams_own_are_taken(engine: str) -> None:
    names = [*sorted(environment_variables.names_for(engine))[:49], "APP_MODE"]
    assert "OMP_NUM_THREADS" in names

    assert dict(_spec(engine, dict.fromkeys(names, "1")).env) == dict.fromkeys(names, "1")


def test_variables_of_vllm_are_for_vllm_only() -> None:
    with pytest.raises(Rejected, match="env"):
        _spec("triton", {"VLLM_LOGGING_LEVEL": "DEBUG"})

    assert _spec("kserve-vllm", {"VLLM_LOGGING_LEVEL": "DEBUG"}).env == (
        ("VLLM_LOGGING_LEVEL", "DEBUG"),
    )


def test_variables_of_sglang_are_for_sglang_only() -> None:
    variable = {"SGLANG_LOG_GC": "1"}
    assert "has no effect on kserve-vllm" in _refusal("kserve-vllm", "SGLANG_LOG_GC")
    assert "has no effect on kserve-sglang" in _refusal("kserve-sglang", "VLLM_USE_V1")
    assert _spec("kserve-sglang", variable).env == (("SGLANG_LOG_GC", "1"),)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({f"APP_{index}": "" for index in range(51)}, "at most 50"),
        ({"APP_A": "x" * 4097}, "at most 4096"),
        ({"APP_A": "a\0b"}, "must be text"),
        ({"APP-A": "x"}, "is not a valid variable name"),
    ],
)
def test_their_number_and_length_are_bounded(env: dict[str, str], message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        _spec("triton", env)

    assert message in refusal.value.fields["env"]
