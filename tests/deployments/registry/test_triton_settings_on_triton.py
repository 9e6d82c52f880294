"""What settings become, on the real Triton of the local cluster: it loads each, and does what it says.

Its only backend is the Python one, on the CPU, so model_repository.prepare writes KIND_CPU and leaves
accelerators out. Settings of GPUs are checked by what Triton's core says to the text as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import pytest
from onnx import TensorProto, helper

from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Backend, Signature, Tensor
from deployments.spec.domain.model_settings import ModelSettings
from slipway_localcluster.controllers import model_repository
from tests import plain_http
from tests.deployments.registry.triton_settings_server import Server, at, run, write
from tests.localcluster.controllers import onnx_models

_ADDER: Final = Signature(
    (Tensor("x", "FP32", (-1, 2)),), (Tensor("y", "FP32", (-1, 2)),), max_batch_size=32
)
_WITH_START: Final = Signature(
    (Tensor("x", "FP32", (-1, 2)), Tensor("start", "INT32", (-1, 1))),
    (Tensor("y", "FP32", (-1, 2)),),
    max_batch_size=32,
)
_OFF: Final = {"is_dynamic": False}
_QUEUE: Final = {
    "max_size": 100,
    "timeout_us": 30_000_000,
    "timeout_action": "delay",
    "allow_timeout_override": True,
    "priority_levels": 3,
    "default_priority_level": 2,
    "priority_max_sizes": [10, 0, 30],
}
# Model -> its settings, and what Triton's own configuration then has at a path.
_LOADED: Final[dict[str, tuple[dict[str, Any], str, Any]]] = {
    "priorities": (
        {"triton": {"queue": _QUEUE}},
        "dynamic_batching.priority_queue_policy.1.max_queue_size",
        10,
    ),
    "ordered": (
        {"batching": {"preserve_ordering": True, "max_batch_size": 4}},
        "dynamic_batching.preserve_ordering",
        True,
    ),
    "direct": (
        {"batching": _OFF, "triton": {"sequence": {"minimum_slot_utilization_percent": 50}}},
        "sequence_batching.direct.minimum_slot_utilization",
        0.5,
    ),
    "oldest": (
        {
            "batching": _OFF,
            "triton": {"sequence": {"strategy": "oldest", "preferred_batch_sizes": [4]}},
        },
        "sequence_batching.oldest.max_candidate_sequences",
        16,
    ),
    "limited": (
        {
            "instances_per_gpu": 2,
            "triton": {"instances": {"priority": 2, "resources": ["slots=1"]}},
        },
        "instance_group.0.rate_limiter.resources.0.name",
        "slots",
    ),
    "warm": (
        {"warm_up": True, "triton": {"warm_up": {"batch_sizes": [1, 8], "data": "random"}}},
        "model_warmup.1.batch_size",
        8,
    ),
    "cached": ({"triton": {"response_cache_mib": 8}}, "response_cache.enable", True),
    "specific": (
        {"triton": {"version_policy": "specific", "versions": [1]}},
        "version_policy.specific.versions.0",
        1,
    ),
    "all": ({"triton": {"version_policy": "all"}}, "version_policy.all", {}),
    "decoupled": (
        {"triton": {"decoupled": True}},
        "model_transaction_policy.decoupled",
        True,
    ),
    "tuned": (
        {
            "triton": {
                "optimization": {"graph_level": 1, "eager_batching": True},
                "parameters": ["intra_op_thread_count=2"],
                "metric_tags": ["tier=gold"],
            }
        },
        "parameters.intra_op_thread_count.string_value",
        "2",
    ),
}
_CONTROLLED: Final = ModelSettings.from_json(
    {"batching": _OFF, "triton": {"sequence": {"start_input": "start"}}}
)
# As they are, for Triton's core: it reads all of a text before it says that there is no GPU.
_FOR_GPUS: Final[dict[str, dict[str, Any]]] = {
    "on-gpu": {"triton": {"instances": {"gpus": [0]}}},
    "tensorrt": {
        "precision": "fp16",
        "triton": {"optimization": {"tensorrt_workspace_mib": 512}},
    },
}


_PYTHON: Final = replace(_ADDER, backend=Backend("python", "model.py"))
_TENSORS: Final = """
    input { name: "x" data_type: TYPE_FP32 dims: [2] } output { name: "y" data_type: TYPE_FP32 dims: [2] }
"""
# Texts that Triton refuses, what it says, and what the portal says before.
_REFUSED: Final = {
    "cached-decoupled": (
        "model_transaction_policy { decoupled: true } response_cache { enable: true }",
        "does not currently support model cached-decoupled with 'decoupled' transaction policy",
        "Triton caches no responses of sequences and no decoupled ones.",
    ),
    "cached-sequence": (
        "sequence_batching { direct { } } response_cache { enable: true }",
        "does not currently support model cached-sequence with sequence batching scheduler",
        "Triton caches no responses of sequences and no decoupled ones.",
    ),
    "level-outside": (
        "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
        "default priority level must be in range [1, 2] for level-outside",
        "Use 1 to 2.",
    ),
    "no-default-level": (
        "dynamic_batching { priority_levels: 2 }",
        "default priority level must be in range [1, 2] for no-default-level",
        "Use 1 to 2.",
    ),
    "policy-outside": (
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 "
        "priority_queue_policy { key: 5 value { max_queue_size: 1 } } }",
        "priority queue policy must have priority level in range [1, 2] for policy-outside",
        "The levels share timeout_action",
    ),
    "preferred-too-large": (
        "dynamic_batching { preferred_batch_size: [64] }",
        "dynamic batching preferred size must be <= max batch size for preferred-too-large",
        "Remove 64 from the preferred sizes.",
    ),
    "sequence-too-large": (
        "sequence_batching { oldest { max_candidate_sequences: 4 preferred_batch_size: [64] } }",
        "sequence batching preferred batch size must be <= max batch size for sequence-too-large",
        "Remove 64 from the preferred sizes of sequences.",
    ),
    "gpu-of-a-cpu": (
        "instance_group { kind: KIND_CPU gpus: [0] }",
        "has kind KIND_CPU but specifies one or more GPUs",
        "Instances on the CPU use no GPU.",
    ),
    "no-version": (
        "version_policy { specific { versions: [3] } }",
        "at least one version must be available under the version policy of model 'no-version'",
        "The model is in version directory 1.",
    ),
}


def _adds_start() -> bytes:
    """y = x + 10 in the first request of a sequence, else x."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2]),
        helper.make_tensor_value_info("start", TensorProto.INT32, ["batch", 1]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])
    ten = helper.make_tensor("ten", TensorProto.FLOAT, [1], [10.0])
    nodes = [
        helper.make_node("Cast", ["start"], ["first"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["first", "ten"], ["tens"]),
        helper.make_node("Add", ["x", "tens"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "starts", inputs, [y], initializer=[ten])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("pytriton")
    root = tmp_path_factory.mktemp("settings")
    models = root / "models"
    for name, (settings, *_) in _LOADED.items():
        text = triton_config.render(
            model=name, signature=_ADDER, spec=ModelSettings.from_json(settings)
        )
        write(models, name, text, onnx_models.adds(1))
    text = triton_config.render(model="starts", signature=_WITH_START, spec=_CONTROLLED)
    write(models, "starts", text, _adds_start())
    model_repository.prepare(models)
    for name, settings in _FOR_GPUS.items():
        text = triton_config.render(
            model=name, signature=_PYTHON, spec=ModelSettings.from_json(settings)
        )
        write(models, name, text, onnx_models.adds(1), copy_of=models / "ordered")
    for name, (text, *_) in _REFUSED.items():
        full = f'name: "{name}" backend: "python" max_batch_size: 32 {text} {_TENSORS}'
        write(models, name, full, b"", copy_of=models / "ordered")
    yield from run(root, models, needed=[*_LOADED, "starts"])


@pytest.mark.parametrize("name", _LOADED)
def test_triton_loads_the_setting_with_its_value(server: Server, name: str) -> None:
    _, path, expected = _LOADED[name]

    ready = plain_http.client.get(f"{server.url}/v2/models/{name}/ready")

    assert ready.status_code == 200, server.log.read_text()[-3000:]
    assert at(server.get(f"{name}/config"), path) == expected


def test_the_start_of_a_sequence_reaches_the_models_control_input(server: Server) -> None:
    first = server.infer("starts", sequence_id=7, sequence_start=True)
    second = server.infer("starts", sequence_id=7)
    last = server.infer("starts", sequence_id=7, sequence_end=True)

    assert (first, second, last) == (11.0, 1.0, 1.0)
    assert [item["name"] for item in server.get("starts/config")["input"]] == ["x"]


def test_a_request_without_its_sequence_is_refused(server: Server) -> None:
    assert "must specify the START flag" in str(server.infer("starts", sequence_id=99))


def test_equal_requests_are_answered_from_the_cache(server: Server) -> None:
    answers = [server.infer("cached") for _ in range(3)]
    stats = server.get("cached/stats")["model_stats"][0]["inference_stats"]

    assert answers == [2.0, 2.0, 2.0]
    assert (stats["cache_miss"]["count"], stats["cache_hit"]["count"]) == (1, 2)


def test_instances_take_turns_for_their_resource(server: Server) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: server.infer("limited"), range(8)))

    assert answers == [2.0] * 8


def test_requests_of_any_priority_are_answered(server: Server) -> None:
    assert server.infer("priorities", priority=1) == 2.0
    assert server.infer("priorities") == 2.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "on-gpu",
            "instance group on-gpu_0 of model on-gpu specifies invalid or unsupported gpu id 0",
        ),
        (
            "tensorrt",
            "instance group tensorrt_0 of model tensorrt has kind KIND_GPU but no GPUs are available",
        ),
    ],
)
def test_tritons_core_takes_the_text_for_gpus_and_misses_only_the_gpu(
    server: Server, name: str, message: str
) -> None:
    """KIND_GPU is stated, so a model never moves to the CPU silently."""
    assert plain_http.client.get(f"{server.url}/v2/models/{name}/ready").status_code != 200
    assert message in server.log.read_text()


@pytest.mark.parametrize("name", _REFUSED)
def test_what_triton_refuses_the_portal_refuses_first(server: Server, name: str) -> None:
    text, tritons, ours = _REFUSED[name]

    reading = triton_config.read(f"max_batch_size: 32 {text}", model=name, signature=_PYTHON)

    assert tritons in server.log.read_text()
    assert reading.settings is None
    assert any(ours in str(problem) for problem in reading.blocking), reading.problems
