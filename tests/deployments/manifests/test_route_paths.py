"""What the stable address of a deployment carries, and what of a server it never does."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.manifests.domain import (
    http_route,
    namespace,
    revision,
    route_paths,
    triton_args,
)
from deployments.manifests.domain.metadata import (
    AdditionalModelFiles,
    ManifestContext,
    ServedRevision,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec

_CONTEXT = ManifestContext(
    "vision", "vision", "detector", 1, False, "gw", "gw", "i", "s", vllm_image="v"
)
_LLM = {"hugging_face_id": "org/model"}
_SERVER = ["/v2", "/v2/health/live", "/v2/health/ready"]
_MODEL = [
    "/v2/models/m",
    "/v2/models/m/generate",
    "/v2/models/m/generate_stream",
    "/v2/models/m/infer",
    "/v2/models/m/ready",
    "/v2/models/m/versions/1",
    "/v2/models/m/versions/1/generate",
    "/v2/models/m/versions/1/generate_stream",
    "/v2/models/m/versions/1/infer",
    "/v2/models/m/versions/1/ready",
]
_OPENAI = [
    "/health",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/models",
    "/v1/rerank",
    "/v1/responses",
    "/v1/score",
]
_BELOW_MODELS = [*_SERVER, "/v2/models/*"]


def _spec(engine: str, **data: Any) -> serving_spec.ServingSpec:
    return ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", **data})


def _paths(*specs: tuple[serving_spec.ServingSpec, int]) -> list[str]:
    """What is carried, each path to the same path of the server."""
    backends = [
        http_route.backend_for(number, spec, weight, model="m")
        for number, (spec, weight) in enumerate(specs, 1)
    ]
    rows = []
    for rule in http_route.http_route(_CONTEXT, backends)["spec"]["rules"]:
        if "headers" in rule["matches"][0]:
            continue  # gRPC has a test of its own.
        (match,) = rule["matches"]
        change = rule["filters"][0]["urlRewrite"]["path"]
        path = match["path"]
        assert path["value"].startswith("/vision/detector/")
        on_server = path["value"].removeprefix("/vision/detector")
        if path["type"] == "Exact":
            assert change == {"type": "ReplaceFullPath", "replaceFullPath": on_server}
            rows.append(on_server)
        else:
            assert change == {"type": "ReplacePrefixMatch", "replacePrefixMatch": on_server}
            rows.append(f"{on_server}/*")
    return rows


@pytest.mark.parametrize(
    ("engine", "data", "carried"),
    [
        ("triton", {}, [*_SERVER, *_MODEL]),
        ("kserve-triton", {}, [*_SERVER, *_MODEL]),
        ("triton-vllm", {"llm": _LLM}, [*_SERVER, *_MODEL]),
        ("kserve-vllm", {"llm": _LLM}, _OPENAI),
        ("kserve-sglang", {"llm": _LLM}, _OPENAI),
        ("kserve-tensorrt-llm", {"llm": _LLM}, _OPENAI),
        ("llm-inference-service", {"llm": _LLM}, _OPENAI),
        ("triton", {"additional_models": [{"model": "n", "version": 1}]}, _BELOW_MODELS),
        (
            "kserve-vllm",
            {"llm": {"artifact": "pvc://weights/m", "nodes": 2}},
            [
                *_OPENAI[:1],
                "/openai/v1/chat/completions",
                "/openai/v1/completions",
                "/openai/v1/embeddings",
                "/openai/v1/models",
                *_OPENAI[1:],
            ],
        ),
    ],
)
def test_the_address_carries_inference_and_metadata_of_the_engine_only(
    engine: str, data: dict[str, Any], carried: list[str]
) -> None:
    assert _paths((_spec(engine, **data), 100)) == carried


def test_a_canary_of_another_engine_adds_its_paths_once_it_has_weight() -> None:
    triton, vllm = _spec("triton"), _spec("kserve-vllm", llm=_LLM)

    assert _paths((triton, 90), (vllm, 10)) == [*_OPENAI, *_BELOW_MODELS]
    assert _paths((triton, 100), (vllm, 0)) == [*_SERVER, *_MODEL]


def _grpc_rules(*backends: http_route.RouteBackend) -> list[dict[str, Any]]:
    rules = http_route.http_route(_CONTEXT, backends)["spec"]["rules"]
    return [rule for rule in rules if "headers" in rule["matches"][0]]


def test_grpc_carries_inference_metadata_and_health_of_the_deployment_that_its_header_names() -> (
    None
):
    [rule] = _grpc_rules(
        http_route.backend_for(1, _spec("kserve-triton"), 90, model="m"),
        http_route.backend_for(2, _spec("triton"), 10, model="m"),
        http_route.backend_for(3, _spec("triton"), 0, model="m", mirror=25),
    )

    assert sorted(match["path"]["value"].rpartition("/")[2] for match in rule["matches"]) == [
        "ModelInfer",
        "ModelMetadata",
        "ModelReady",
        "ModelStreamInfer",
        "ServerLive",
        "ServerMetadata",
        "ServerReady",
    ]
    for match in rule["matches"]:
        assert match["path"]["type"] == "Exact"
        assert match["path"]["value"].startswith("/inference.GRPCInferenceService/")
        assert match["headers"] == [
            {"type": "Exact", "name": "slipway-deployment", "value": "vision/detector"}
        ]
    assert [(ref["name"], ref["port"], ref["weight"]) for ref in rule["backendRefs"]] == [
        ("detector-r1-predictor", 9000, 90),
        ("detector-r2", 9000, 10),
    ]
    mirror = rule["filters"][0]["requestMirror"]
    assert (mirror["backendRef"], mirror["percent"]) == ({"name": "detector-r3", "port": 9000}, 25)


@pytest.mark.parametrize(
    ("engine", "data"),
    [
        ("kserve-vllm", {"llm": _LLM}),
        ("llm-inference-service", {"llm": _LLM}),
        ("kserve-triton", {"scaling": {"kind": "knative"}}),
    ],
)
def test_no_request_by_grpc_is_sent_to_a_revision_without_its_port(
    engine: str, data: dict[str, Any]
) -> None:
    without = http_route.backend_for(1, _spec(engine, **data), 50, model="m")
    triton = http_route.backend_for(2, _spec("triton"), 50, model="m")

    assert _grpc_rules(without) == []
    assert _grpc_rules(triton, without) == []
    assert len(_grpc_rules(triton)) == 1


def test_only_answers_of_tokens_have_no_time_limit() -> None:
    backend = http_route.backend_for(1, _spec("kserve-vllm", llm=_LLM), 100, model="m")

    rules = http_route.http_route(_CONTEXT, [backend])["spec"]["rules"]

    limits = {
        rule["matches"][0]["path"]["value"].removeprefix("/vision/detector"): rule.get("timeouts")
        for rule in rules
    }
    unlimited = {"/v1/chat/completions", "/v1/completions", "/v1/responses"}
    assert limits == {path: {"request": "0s"} if path in unlimited else None for path in _OPENAI}


@pytest.mark.parametrize("count", range(9))
def test_a_route_never_has_more_rules_than_the_gateway_accepts(count: int) -> None:
    additional = [{"model": f"n{index}", "version": 1} for index in range(count)]
    triton, vllm = _spec("triton", additional_models=additional), _spec("kserve-vllm", llm=_LLM)

    assert len(_paths((triton, 50), (vllm, 50))) <= 16


def test_rules_that_disagree_have_no_weights_and_added_paths_are_observed() -> None:
    expected = [http_route.backend_for(1, _spec("triton"), 100, model="m")]
    live = http_route.http_route(_CONTEXT, expected)
    assert http_route.weights_in(live) == {"detector-r1": 100}
    paths = route_paths.paths_in(live)
    assert "Exact /vision/detector/v2 -> /v2" in paths
    assert route_paths.paths_in(None) == frozenset()

    open_for_all = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/vision/detector"}}],
        "filters": [
            {
                "type": "URLRewrite",
                "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
            }
        ],
        "backendRefs": [{"name": "detector-r9", "port": 80}],
    }
    live["spec"]["rules"].append(open_for_all)

    assert http_route.weights_in(live) == {}
    assert route_paths.paths_in(live) - paths == {"PathPrefix /vision/detector -> /"}


def _command(engine: str, is_multi_model: bool) -> list[str]:
    others = [{"model": "n", "version": 1}] if is_multi_model else []
    spec = (
        _spec(engine, additional_models=others)
        if engine != "triton-vllm"
        else _spec(engine, llm=_LLM)
    )
    models = tuple(
        AdditionalModelFiles("n", "n:1", "cd" * 32, "s3://b/n/") for _ in spec.additional_models
    )
    served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec, additional_models=models)
    if engine == "kserve-triton":
        # KServe appends what the revision adds to what the runtime says.
        (container,) = namespace.serving_runtime(_CONTEXT)["spec"]["containers"]
        (model,) = [
            manifest["spec"]["predictor"]["model"]
            for manifest in revision.build_own(_CONTEXT, served)
            if manifest["kind"] == "InferenceService"
        ]
        return [*container["args"], *model.get("args", [])]
    (deployment,) = [
        manifest
        for manifest in revision.build_own(_CONTEXT, served)
        if manifest["kind"] == "Deployment"
    ]
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    return list(server["args"])


@pytest.mark.parametrize("is_multi_model", [False, True])
@pytest.mark.parametrize("engine", ["triton", "kserve-triton", "triton-vllm"])
def test_every_triton_refuses_all_but_inference_and_metadata(
    engine: str, is_multi_model: bool
) -> None:
    command = _command(engine, is_multi_model and engine != "triton-vllm")

    refused = "shared-memory,model-config,model-repository,statistics,trace,logging"
    restricted = [word for word in command if "restricted" in word]
    assert restricted == [
        f"--http-restricted-api={refused}:slipway-shut=\n",
        f"--grpc-restricted-protocol={refused}:slipway-shut=\n",
    ]
    # No client can send it: a header's value ends at a line feed.
    assert triton_args.command()[0] == command[0] == "tritonserver"
