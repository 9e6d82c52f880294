"""Which paths of a model server the stable address carries: inference and metadata, no administration.

Exact paths that replace the whole path: nothing of what a caller writes behind them reaches the
server, however it is encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec

# The Gateway API takes so many rules in one HTTPRoute, and each rewrite is a rule of its own.
MOST_RULES: Final = 16
_SERVER: Final = ("/v2", "/v2/health/live", "/v2/health/ready")
_MODEL: Final = ("", "/ready", "/infer", "/generate", "/generate_stream")
# The portal lays every model out as the one version 1.
_VERSIONS: Final = ("", "/versions/1")
_MODELS: Final = "/v2/models"
_OPENAI: Final = (
    "/health",
    "/v1/models",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/responses",
    "/v1/score",
)
# KServe's own server of language models, which runs over several nodes, answers below /openai.
_OPENAI_OF_KSERVE: Final = (
    "/openai/v1/models",
    "/openai/v1/chat/completions",
    "/openai/v1/completions",
    "/openai/v1/embeddings",
)


@dataclass(frozen=True, slots=True, order=True)
class ServerPath:
    """`is_prefix`: with everything below it."""

    value: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Api:
    """What one revision answers: protocols, and the models that speak v2."""

    models: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def api_of(spec: ServingSpec, model: str) -> Api:
    """`model` is the revision's own; those packed with it answer too."""
    if spec.components.transformer_image:
        # KServe's transformer has the paths of the first protocol as well.
        first = (f"/v1/models/{model}", f"/v1/models/{model}:predict")
        return Api((model, *(one.model for one in spec.packed)), first)
    if spec.engine not in (serving_spec.KSERVE_VLLM, serving_spec.LLM_SERVICE):
        return Api((model, *(one.model for one in spec.packed)))
    return Api(others=_OPENAI + (_OPENAI_OF_KSERVE if spec.nodes > 1 else ()))


def paths_of(apis: Sequence[Api]) -> list[ServerPath]:
    """The paths of all of them, sorted. Where single paths are more than a route takes rules, all
    below /v2/models: Triton itself refuses what is neither inference nor metadata there.
    """
    models = sorted({model for api in apis for model in api.models})
    others = _sorted(path for api in apis for path in api.others)
    if not models:
        return others
    single = [*others, *_sorted([*_SERVER, *(path for one in models for path in _paths(one))])]
    if len(single) <= MOST_RULES:
        return single
    return [*others, *_sorted(_SERVER), ServerPath(_MODELS, is_prefix=True)]


def _paths(model: str) -> list[str]:
    return [f"{_MODELS}/{model}{version}{path}" for version in _VERSIONS for path in _MODEL]


def _sorted(values: Iterable[str]) -> list[ServerPath]:
    return [ServerPath(value) for value in sorted(set(values))]
