"""Objects that serving reads beside a version's own, made from the settings of a revision.

Named after a digest of their content and never changed, so a revision names exactly what it loads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deployments.domain import layout, triton_config
from deployments.domain.signatures import Signature
from deployments.domain.spec_engines import ONNX_ENGINES, TRITON_VLLM
from deployments.domain.specs import Llm, ServingSpec

_DTYPES: Final = {"original": "auto", "fp16": "half", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class ServingFiles:
    """`prefix` is Triton's repository; `config_name` is empty where config.pbtxt itself is loaded."""

    prefix: str
    config_name: str = ""
    objects: Mapping[str, bytes] = field(default_factory=dict)


def plan(
    *, team: str, model: str, number: int, prefix: str, signature: Signature, spec: ServingSpec
) -> ServingFiles:
    """`prefix` is where the version was laid out."""
    if spec.engine == TRITON_VLLM and spec.llm is not None:
        return _vllm(layout.number_prefix(team=team, model=model, number=number), model, spec)
    if spec.engine not in ONNX_ENGINES or triton_config.is_usual(signature, spec):
        return ServingFiles(prefix)
    text = triton_config.render(model=model, signature=signature, spec=spec).encode()
    name = f"{layout.SETTINGS_PREFIX}{_digest(text)}"
    return ServingFiles(prefix, name, {layout.settings_key(prefix, model, name): text})


def _vllm(root: str, model: str, spec: ServingSpec) -> ServingFiles:
    """A repository of its own: what vLLM is told lies in the version's directory."""
    engine = json.dumps(_engine_of(spec, spec.llm or Llm()), sort_keys=True, indent=2).encode()
    config = triton_config.render_vllm(model=model).encode()
    prefix = f"{root}vllm-{_digest(engine + config)}/"
    return ServingFiles(
        prefix,
        objects={
            layout.config_key(prefix, model): config,
            f"{prefix}{model}/1/model.json": engine,
        },
    )


def _engine_of(spec: ServingSpec, llm: Llm) -> dict[str, Any]:
    made: dict[str, Any] = {
        "model": llm.hugging_face_id,
        "dtype": _DTYPES[spec.precision],
        "tensor_parallel_size": llm.tensor_parallel,
        "gpu_memory_utilization": llm.gpu_memory_utilization,
        "kv_cache_dtype": llm.kv_cache_dtype,
        "enable_prefix_caching": llm.prefix_caching,
        # Without its statistics vLLM has no metrics to tell.
        "disable_log_stats": False,
    }
    if llm.max_model_len:
        made["max_model_len"] = llm.max_model_len
    if llm.max_num_seqs:
        made["max_num_seqs"] = llm.max_num_seqs
    return made


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
