"""Environment variables that a request may set, by engine. Everything else is the platform's.

An allow list: other variables name libraries to load, GPUs, servers or proxies, and each new image
brings more of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from deployments.spec.domain.engines import KSERVE_SGLANG, LLM_ENGINES, VLLM_ENGINES

# No server reads these: they are a team's own.
OWN_PREFIX: Final = "APP_"
MAX_VARIABLES: Final = 50
_MAX_VALUE_LENGTH: Final = 4096
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_EVERY_ENGINE: Final = frozenset(
    {
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_MODULE_LOADING",
        "KMP_AFFINITY",
        "KMP_BLOCKTIME",
        "MALLOC_ARENA_MAX",
        "MALLOC_TRIM_THRESHOLD_",
        "MKL_DYNAMIC",
        "MKL_NUM_THREADS",
        "NCCL_ALGO",
        "NCCL_DEBUG",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_LEVEL",
        "NCCL_PROTO",
        "NCCL_SHM_DISABLE",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_DYNAMIC",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "OMP_WAIT_POLICY",
        "OPENBLAS_NUM_THREADS",
        "TZ",
    }
)
_LANGUAGE_MODELS: Final = frozenset(
    {
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_HUB_DOWNLOAD_TIMEOUT",
        "HF_HUB_ENABLE_HF_TRANSFER",
        "HF_HUB_ETAG_TIMEOUT",
        "NCCL_CUMEM_ENABLE",
        "NCCL_IB_DISABLE",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TOKENIZERS_PARALLELISM",
    }
)
_VLLM: Final = frozenset(
    {
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
        "VLLM_ATTENTION_BACKEND",
        "VLLM_ENGINE_ITERATION_TIMEOUT_S",
        "VLLM_FLASH_ATTN_VERSION",
        "VLLM_LOGGING_LEVEL",
        "VLLM_RPC_TIMEOUT",
        "VLLM_SKIP_P2P_CHECK",
        "VLLM_USE_FLASHINFER_SAMPLER",
        "VLLM_USE_V1",
        "VLLM_WORKER_MULTIPROC_METHOD",
    }
)
_SGLANG: Final = frozenset(
    {
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
        "SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION",
        "SGLANG_FORWARD_UNKNOWN_TOOLS",
        "SGLANG_INIT_NEW_TOKEN_RATIO",
        "SGLANG_LOG_GC",
    }
)
_OF_SERVERS: Final[tuple[tuple[tuple[str, ...], frozenset[str]], ...]] = (
    (LLM_ENGINES, _LANGUAGE_MODELS),
    (VLLM_ENGINES, _VLLM),
    ((KSERVE_SGLANG,), _SGLANG),
)
# What the platform sets, for a better answer than "not on the list".
_PLATFORM: Final[Mapping[str, str]] = {
    "AWS_": "models are read with the identity of the service account",
    "BASH_ENV": "it runs code before the server starts",
    "CUDA_INJECTION": "it loads code into the server",
    "CUDA_VISIBLE_DEVICES": "Kubernetes assigns GPUs to pods",
    "GCONV_PATH": "it loads code into the server",
    "HF_ENDPOINT": "weights come from the platform's trusted hub",
    "HF_TOKEN": "store it as HF_TOKEN in the Secret slipway-hugging-face of the team's namespace",
    "LD_": "it loads code into the server",
    "NVIDIA_VISIBLE_DEVICES": "Kubernetes assigns GPUs to pods",
    "OPENSSL_": "it loads code into the server",
    "PYTHON": "it loads code into the server",
}


def names_for(engine: str) -> frozenset[str]:
    """Return allowed names, besides those that begin with OWN_PREFIX."""
    return _EVERY_ENGINE.union(*(names for engines, names in _OF_SERVERS if engine in engines))


def problem_with(env: Iterable[tuple[str, str]], engine: str) -> str:
    """Say why the first refused variable is refused. Empty when there is none."""
    variables = list(env)
    if len(variables) > MAX_VARIABLES:
        return f"Set at most {MAX_VARIABLES} variables."
    problems = (_problem(name, value, engine) for name, value in variables)
    return next((problem for problem in problems if problem), "")


def _problem(name: str, value: str, engine: str) -> str:
    if _NAME.fullmatch(name) is None:
        return f"'{name}' is not a valid variable name. Use letters, digits and '_'."
    if len(value) > _MAX_VALUE_LENGTH or "\0" in value:
        return f"The value of {name} must be text of at most {_MAX_VALUE_LENGTH} characters."
    if name in names_for(engine) or (name.startswith(OWN_PREFIX) and name != OWN_PREFIX):
        return ""
    why = next((why for start, why in _PLATFORM.items() if name.startswith(start)), "")
    if why:
        return f"{name} is set by the platform: {why}. Remove it."
    return (
        f"{name} is set by the platform or has no effect on {engine}. Remove it, or start the "
        f"names of your own variables with {OWN_PREFIX}."
    )
