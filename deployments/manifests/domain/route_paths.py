"""The paths of a model server that the stable address carries: inference and metadata, no admin API.

They are exact and replace the whole path: nothing that a caller appends reaches the server, however
it is encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec

# The limit of the Gateway API for one HTTPRoute, less the rule of gRPC; each rewrite needs a rule.
MAX_RULES: Final = 15
# Inference, metadata and health of KServe's v2 protocol over gRPC.
GRPC_METHODS: Final = tuple(
    f"/inference.GRPCInferenceService/{method}"
    for method in (
        "ModelInfer",
        "ModelMetadata",
        "ModelReady",
        "ModelStreamInfer",
        "ServerLive",
        "ServerMetadata",
        "ServerReady",
    )
)
_SERVER: Final = ("/v2", "/v2/health/live", "/v2/health/ready")
_MODEL: Final = ("", "/ready", "/infer", "/generate", "/generate_stream")
# The portal stores every model as version 1 of its directory.
_VERSIONS: Final = ("", "/versions/1")
_MODELS: Final = "/v2/models"
# A language model answers with a stream, or after its last token.
_GENERATES_TEXT: Final = ("/completions", "/responses", "/generate", "/generate_stream")
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
# KServe's own server for language models, used over several nodes, answers below /openai.
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

    @property
    def generates_text(self) -> bool:
        return self.value.endswith(_GENERATES_TEXT)


@dataclass(frozen=True, slots=True)
class Api:
    """The API of one revision: the models that speak the v2 protocol, and other paths."""

    models: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def api_of(spec: ServingSpec, model: str) -> Api:
    """`model` is the revision's own; those of multi-model serving answer too."""
    if spec.engine not in serving_spec.OPENAI_ENGINES:
        return Api((model, *(additional.model for additional in spec.additional_models)))
    return Api(others=_OPENAI + (_OPENAI_OF_KSERVE if spec.split_nodes > 1 else ()))


def paths_of(apis: Sequence[Api]) -> list[ServerPath]:
    """The paths of all APIs, sorted. Where they are more than a route may have rules, the prefix
    /v2/models: Triton itself refuses all but inference and metadata below it.
    """
    models = sorted({model for api in apis for model in api.models})
    others = _sorted(path for api in apis for path in api.others)
    if not models:
        return others
    single = [*others, *_sorted([*_SERVER, *(path for model in models for path in _paths(model))])]
    if len(single) <= MAX_RULES:
        return single
    return [*others, *_sorted(_SERVER), ServerPath(_MODELS, is_prefix=True)]


def _paths(model: str) -> list[str]:
    return [f"{_MODELS}/{model}{version}{path}" for version in _VERSIONS for path in _MODEL]


def _sorted(values: Iterable[str]) -> list[ServerPath]:
    return [ServerPath(value) for value in sorted(set(values))]
