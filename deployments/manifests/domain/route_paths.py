"""The paths of a model server that the stable address carries: inference and metadata, no admin API.

They are exact and replace the whole path: nothing that a caller appends reaches the server, however
it is encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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


# What the body of a request at the team's address names as its model, as the body-based router of the Gateway
# API Inference Extension calls it. Whoever sends it himself gets the route of that model, whose keys are checked.
MODEL_HEADER: Final = "X-Gateway-Model-Name"
_TEAM: Final = "/v1"
# The pool that KServe makes of the pods of an LLMInferenceService; its endpoint picker chooses the pod.
POOL: Final = {"group": "inference.networking.k8s.io", "kind": "InferencePool"}


@dataclass(frozen=True, slots=True, order=True)
class ServerPath:
    """A path of a server. `is_prefix`: with everything below it."""

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
    """Return the paths of a revision's server. `model` is the revision's own; those of multi-model serving
    answer too.
    """
    if spec.engine not in serving_spec.OPENAI_ENGINES:
        return Api((model, *(additional.model for additional in spec.additional_models)))
    return Api(others=_OPENAI + (_OPENAI_OF_KSERVE if spec.split_nodes > 1 else ()))


def paths_of(apis: Sequence[Api]) -> list[ServerPath]:
    """Return the paths of all APIs, sorted. Where they are more than a route may have rules, the prefix
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


def team_prefix(namespace: str) -> str:
    """Return the address of a team's language models, for clients of OpenAI's API."""
    return f"/{namespace}{_TEAM}"


def team_paths(namespace: str) -> list[str]:
    """List every path of the team's address, whatever the model."""
    below = sorted(path.removeprefix(_TEAM) for path in _OPENAI if path.startswith(f"{_TEAM}/"))
    return [f"{team_prefix(namespace)}{path}" for path in below]


def team_matches(namespace: str, path: ServerPath, models: Sequence[str]) -> list[dict[str, Any]]:
    """Return the matches of the team's address that lead to a path of the server, one for each model that it
    answers to. Empty for the list of models, which the gateway itself answers, and for paths that the
    address does not have.
    """
    if not path.value.startswith(f"{_TEAM}/") or path.value == f"{_TEAM}/models":
        return []
    value = f"{team_prefix(namespace)}{path.value.removeprefix(_TEAM)}"
    return [
        {
            "path": {"type": "Exact", "value": value},
            "headers": [{"type": "Exact", "name": MODEL_HEADER, "value": model}],
        }
        for model in models
    ]


def paths_in(route: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the paths that the route carries, each as "Exact /team/deployment/v2 -> /v2", the model that its
    body must name, and whether an endpoint picker chooses the pod.
    """
    rules = () if route is None else route.get("spec", {}).get("rules") or [{}]
    return frozenset(text for rule in rules for text in _paths_of_rule(rule))


def _paths_of_rule(rule: Mapping[str, Any]) -> list[str]:
    rewrites = [item.get("urlRewrite", {}).get("path", {}) for item in rule.get("filters", [])]
    target = "".join(
        str(path.get("replaceFullPath") or path.get("replacePrefixMatch") or "")
        for path in rewrites
    )
    if any(is_pool(ref) for ref in rule.get("backendRefs", [])):
        target += " by endpoint picker"
    return [f"{_describe_match(match)} -> {target}" for match in rule.get("matches") or [{}]]


def _describe_match(match: Mapping[str, Any]) -> str:
    path = match.get("path", {})
    models = [
        str(header.get("value", ""))
        for header in match.get("headers", [])
        if header.get("name") == MODEL_HEADER
    ]
    return " ".join([path.get("type", ""), path.get("value", ""), *models])


def is_pool(ref: Mapping[str, Any]) -> bool:
    return bool(ref.get("kind") == POOL["kind"])
