"""The settings of a preset: a part of a serving spec, without what belongs to one version or one deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deployments.spec.domain.engines import KSERVE_TRITON, KSERVE_VLLM
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core import definitions
from portal.core.definitions import Rejected

# Of one version: its file, its weights and the names of its inputs. Of one deployment: its variables and job queues.
_APART: Final = (
    "additional_models",
    "env",
    "image",
    "llm.artifact",
    "llm.gated",
    "llm.hugging_face_id",
    "llm.lora_adapters",
    "llm.max_lora_rank",
    "llm.parameters_millions",
    "llm.tensor_parallel",
    "precision",
    "scaling.kafka",
    "scaling.redis",
    "scaling.sqs",
    "schema",
    "triton",
)
_PATHS: Final = tuple(definitions.deep_fields_of(ServingSpec))
# In place of what a preset leaves to the version.
_ANY_GPU: Final = {"instance_type": "g5.xlarge"}


def pick(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a spec that a preset may hold."""
    return _pick(spec, "")


def apply(settings: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with the preset's settings for all that it leaves out."""
    merged = dict(settings)
    for name, value in spec.items():
        below = merged.get(name)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[name] = apply(below, value)
        else:
            merged[name] = value
    return merged


def check(settings: Mapping[str, Any]) -> None:
    """Raise Rejected for settings that no request could have, or that belong to one version or deployment."""
    for path in _list_paths(settings, ""):
        if _is_apart(path):
            raise Rejected(
                f"A preset cannot hold {path}: it belongs to one version or deployment.",
                fields={path: "remove it"},
            )
        if path not in _PATHS:
            raise Rejected(f"{path} is not a setting of a spec.", fields={path: "unknown"})
    if not settings:
        raise Rejected("A preset needs at least one setting.", fields={"settings": "required"})
    engine = KSERVE_VLLM if "llm" in settings else KSERVE_TRITON
    replicas = {"max_replicas": settings["min_replicas"]} if "min_replicas" in settings else {}
    ServingSpec.from_json({"engine": engine, **_ANY_GPU, **replicas, **settings})


def _pick(part: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    picked: dict[str, Any] = {}
    for name, value in part.items():
        if _is_apart(f"{prefix}{name}") or value is None:
            continue
        kept = _pick(value, f"{prefix}{name}.") if isinstance(value, Mapping) else value
        if kept != {}:
            picked[name] = kept
    return picked


def _is_apart(path: str) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in _APART)


def _list_paths(part: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, value in part.items():
        path = f"{prefix}{name}"
        yield path
        if isinstance(value, Mapping) and not _is_apart(path):
            yield from _list_paths(value, f"{path}.")
