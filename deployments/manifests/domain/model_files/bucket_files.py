"""Objects that serving reads in addition to a version's own, rendered from a revision's settings.

Their names contain a digest of their content and they never change, so a revision names exactly what
it loads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from deployments.registry.domain import object_keys, triton_config
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_config import Tuning, warm_up_samples
from deployments.registry.domain.triton_config.warm_up_samples import WarmUpSample
from deployments.spec.domain.engines import ONNX_ENGINES, TRITON_VLLM
from deployments.spec.domain.serving_spec import AdditionalModel, Llm, ServingSpec

_DTYPES: Final = {"original": "auto", "fp16": "half", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class ServingFiles:
    """The files of a revision in the bucket. `prefix` is Triton's repository; `config_name` is empty where
    config.pbtxt itself is loaded.
    """

    prefix: str
    config_name: str = ""
    objects: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdditionalServingFiles:
    """A version of multi-model serving: its prefix in the bucket, and how the revision loads it."""

    prefix: str
    signature: Signature
    tuning: AdditionalModel


def plan(
    *,
    team: str,
    model: str,
    number: int,
    prefix: str,
    signature: Signature,
    spec: ServingSpec,
    additional_models: Sequence[AdditionalServingFiles] = (),
    golden: Sequence[WarmUpSample] = (),
) -> ServingFiles:
    """Plan the files of a revision. `prefix` is the serving prefix of the version; `golden` are the golden
    requests of its warm-up.
    """
    if spec.engine == TRITON_VLLM and spec.llm is not None:
        return _vllm(object_keys.number_prefix(team=team, model=model, number=number), model, spec)
    if spec.engine not in ONNX_ENGINES:
        return ServingFiles(prefix)
    models: list[tuple[str, str, Signature, Tuning]] = [(prefix, model, signature, spec)]
    models += [
        (files.prefix, files.tuning.model, files.signature, files.tuning)
        for files in additional_models
    ]
    return _with_settings(prefix, models, golden)


def _with_settings(
    prefix: str,
    models: Sequence[tuple[str, str, Signature, Tuning]],
    golden: Sequence[WarmUpSample],
) -> ServingFiles:
    """Return the files with the settings' configurations. All of them have one name in the process, because
    Triton takes one. A model with default settings has no configuration of that name, so Triton loads its
    config.pbtxt.
    """
    texts = {
        (root, model): triton_config.render(
            model=model, signature=signature, spec=tuning, golden=() if number else golden
        ).encode()
        for number, (root, model, signature, tuning) in enumerate(models)
        if not triton_config.is_default(signature, tuning)
    }
    if not texts:
        return ServingFiles(prefix)
    name = f"{object_keys.SETTINGS_PREFIX}{_digest(b''.join(texts.values()))}"
    objects = {object_keys.settings_key(*path, name): text for path, text in texts.items()}
    model = models[0][1]
    for file, content in warm_up_samples.files_of(golden).items():
        objects[object_keys.warm_up_key(prefix, model, file)] = content
    return ServingFiles(prefix, name, objects)


def _vllm(root: str, model: str, spec: ServingSpec) -> ServingFiles:
    """Return a model repository of its own: vLLM's engine arguments are in the version's directory."""
    engine = json.dumps(_engine_of(spec, spec.llm or Llm()), sort_keys=True, indent=2).encode()
    config = triton_config.render_vllm(model=model).encode()
    prefix = f"{root}vllm-{_digest(engine + config)}/"
    return ServingFiles(
        prefix,
        objects={
            object_keys.config_key(prefix, model): config,
            f"{prefix}{model}/1/model.json": engine,
        },
    )


def _engine_of(spec: ServingSpec, llm: Llm) -> dict[str, Any]:
    name, _, commit = llm.hugging_face_id.partition(":")
    config: dict[str, Any] = {
        "model": name,
        "dtype": _DTYPES[spec.precision],
        "tensor_parallel_size": llm.tensor_parallel,
        "gpu_memory_utilization": llm.gpu_memory_utilization,
        "kv_cache_dtype": llm.kv_cache_dtype,
        "enable_prefix_caching": llm.prefix_caching,
        # Without its statistics vLLM exports no metrics.
        "disable_log_stats": False,
    }
    if commit:
        config["revision"] = commit
    if llm.max_model_len:
        config["max_model_len"] = llm.max_model_len
    if llm.max_num_seqs:
        config["max_num_seqs"] = llm.max_num_seqs
    if llm.max_num_batched_tokens:
        config["max_num_batched_tokens"] = llm.max_num_batched_tokens
    if llm.quantization != "auto":
        config["quantization"] = llm.quantization
    if llm.enforce_eager:
        config["enforce_eager"] = True
    return config


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
