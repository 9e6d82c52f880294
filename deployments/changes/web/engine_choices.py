"""The engines of a new deployment, each with its reason where it cannot be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.changes.web.form import ENGINES
from deployments.models import ModelVersion
from deployments.registry.domain import loading
from deployments.registry.domain.formats import catalogue
from deployments.spec.domain import cluster_support
from deployments.spec.domain.engines import ENGINES as ENGINE_NAMES
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.selectors.clusters import ClusterInfo

_ENGINE_DETAILS = {
    "kserve-triton": "autoscaling, canary by the route",
    "triton": "plain Deployment, full control",
    "kserve-vllm": "language models on vLLM, by KServe",
    "kserve-sglang": "language models on SGLang, by KServe",
    "kserve-tensorrt-llm": "language models on TensorRT-LLM, by KServe",
    "triton-vllm": "language models, plain Deployment",
    "llm-inference-service": "language models over several nodes",
}


@dataclass(frozen=True, slots=True)
class EngineChoice:
    name: str
    title: str
    detail: str
    # Why it is not offered; empty when it is.
    reason: str


def engine_choices(
    cluster: ClusterInfo | None, version: ModelVersion | None = None
) -> list[EngineChoice]:
    capabilities = cluster.capabilities if cluster else Capabilities()
    source = "" if version is None else version.source_uri
    loads: Sequence[str] = ENGINE_NAMES
    if version is not None and (source or not catalogue.is_for_triton(version.format)):
        loads = loading.engines_for(source, version.format, version.signature)
    choices = []
    for engine, title in ENGINES:
        reason = cluster_support.engine_reason(engine, capabilities)
        if source and engine not in loads:
            reason = f"it cannot load {source.partition('://')[0]}:// references."
        elif engine not in loads:
            reason = "it cannot load the weights of this version."
        off = f"off: {reason}" if reason else ""
        details = capabilities.engine_notes.get(engine) or _ENGINE_DETAILS[engine]
        choices.append(EngineChoice(engine, title, details, off))
    return choices
