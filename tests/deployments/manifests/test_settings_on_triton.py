"""Settings of a spec, on the real Triton of the local cluster: it does what the fields say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given
from tritonclient.grpc import model_config_pb2

from deployments.manifests.domain import triton_args
from deployments.manifests.domain.metadata import AdditionalModelFiles, ServedRevision
from deployments.manifests.domain.model_files import bucket_files
from deployments.manifests.domain.model_files.bucket_files import (
    AdditionalServingFiles,
    ServingFiles,
)
from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import AdditionalModel, Batching, ServingSpec
from slipway_localcluster.controllers import model_repository
from tests import plain_http
from tests.deployments import real_triton
from tests.deployments.manifest_strategies import serving_specs
from tests.localcluster.controllers import onnx_models

_DELAY_US = 400_000
_SIGNATURE = Signature(
    inputs=(Tensor("x", "FP32", (-1, 2)),),
    outputs=(Tensor("y", "FP32", (-1, 2)),),
    max_batch_size=32,
)
_SPEC = ServingSpec(
    engine="triton",
    instance_type="g5.xlarge",
    batching=Batching(max_queue_delay_us=_DELAY_US),
    instances_per_gpu=2,
    warm_up=True,
)
# The same beside two others: one with a setting of its own, one as it was laid out.
_MULTI_MODEL_SPEC = _SPEC.replace(
    additional_models=(
        AdditionalModel(model="tens", version=1, batching=Batching(is_dynamic=False)),
        AdditionalModel(model="hundreds", version=1),
    ),
)
_AMOUNTS = {"adder": 1, "tens": 10, "hundreds": 100}


def _files(spec: ServingSpec) -> ServingFiles:
    return bucket_files.plan(
        team="vision",
        model="adder",
        number=1,
        prefix="p/",
        signature=_SIGNATURE,
        spec=spec,
        additional_models=[
            AdditionalServingFiles(f"{model.model}-p/", _SIGNATURE, model)
            for model in spec.additional_models
        ],
    )


@dataclass(frozen=True)
class Server:
    url: str

    def get(self, path: str, model: str = "adder") -> Any:
        return plain_http.client.get(f"{self.url}/v2/models/{model}{path}").json()

    def infer(self, value: float, model: str = "adder") -> float:
        item = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [value, value]}
        answer = plain_http.client.post(
            f"{self.url}/v2/models/{model}/infer", json={"inputs": [item]}
        )
        return float(answer.json()["outputs"][0]["data"][0])


def _lay_out(root: Path, files: ServingFiles) -> None:
    """As the bucket holds it: each version's own two objects, and what the revision adds."""
    objects = dict(files.objects)
    for model, amount in _AMOUNTS.items():
        prefix = "p/" if model == "adder" else f"{model}-p/"
        default_config = triton_config.render(model=model, signature=_SIGNATURE)
        objects[f"{prefix}{model}/1/model.onnx"] = onnx_models.adds(amount)
        objects[f"{prefix}{model}/config.pbtxt"] = default_config.encode()
    for key, body in objects.items():
        path = root / key.partition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    model_repository.prepare(root)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("pytriton")
    root = tmp_path_factory.mktemp("triton")
    files = _files(_MULTI_MODEL_SPEC)
    _lay_out(root / "models", files)
    served = ServedRevision(
        1,
        "adder",
        "adder:1",
        "",
        "",
        _MULTI_MODEL_SPEC,
        config_name=files.config_name,
        additional_models=tuple(
            AdditionalModelFiles(model.model, model.label, "", "")
            for model in _MULTI_MODEL_SPEC.additional_models
        ),
    )
    words = [*triton_args.command(), *triton_args.settings_of(served)]
    child, port = real_triton.start_with(root, root / "models", [_readable(word) for word in words])
    yield Server(f"http://127.0.0.1:{port}")
    child.kill()


def _readable(argument: str) -> str:
    """These tests read what a deployed Triton does not serve: its configurations and statistics."""
    return argument.replace("model-config,", "").replace("statistics,", "")


def test_triton_loads_the_configuration_of_the_revision_and_not_that_of_the_version(
    server: Server,
) -> None:
    config = server.get("/config")

    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == _DELAY_US
    assert config["instance_group"][0]["count"] == 2
    assert config["model_warmup"][0]["name"] == "batch-1"
    assert config["max_batch_size"] == 32


def test_a_single_request_waits_and_simultaneous_ones_run_as_one_batch(
    server: Server,
) -> None:
    before = server.get("/stats")["model_stats"][0]
    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(server.infer, [1.0, 2.0, 3.0, 4.0]))
    waited = time.monotonic() - started
    after = server.get("/stats")["model_stats"][0]

    assert answers == [2.0, 3.0, 4.0, 5.0]
    assert waited >= _DELAY_US / 1e6
    assert after["inference_count"] - before["inference_count"] == 4
    assert after["execution_count"] - before["execution_count"] < 4


def test_models_of_one_triton_answer_each_with_its_own_settings(server: Server) -> None:
    configs = [server.get("/config", model) for model in _AMOUNTS]

    assert [server.infer(2.0, model) for model in _AMOUNTS] == [3.0, 12.0, 102.0]
    assert [config["instance_group"][0]["count"] for config in configs] == [2, 1, 1]
    assert ["dynamic_batching" in config for config in configs] == [True, False, True]
    assert [len(config.get("model_warmup", ())) for config in configs] == [1, 0, 0]


@pytest.mark.parametrize("header", [{}, {"slipway-shut": ""}, {"slipway-shut": "1"}])
def test_clients_cannot_load_or_unload_models_of_a_multi_model_triton(
    server: Server, header: dict[str, str]
) -> None:
    paths = ("models/tens/unload", "models/adder/load", "models/evil/load", "index")
    answers = [
        plain_http.client.post(f"{server.url}/v2/repository/{path}", json={}, headers=header)
        for path in paths
    ]

    assert [answer.status_code for answer in answers] == [403] * 4
    assert server.infer(2.0, "tens") == 12.0


@given(serving_specs(engines=serving_spec.ONNX_ENGINES))
def test_every_configuration_parses_as_tritons_and_has_the_requested_settings(
    spec: ServingSpec,
) -> None:
    text = triton_config.render(model="adder", signature=_SIGNATURE, spec=spec)

    config = text_format.Parse(text, model_config_pb2.ModelConfig())

    assert config.HasField("dynamic_batching") == spec.batching.is_dynamic
    batching = config.dynamic_batching
    assert batching.max_queue_delay_microseconds == spec.batching.max_queue_delay_us
    assert tuple(batching.preferred_batch_size) == spec.batching.preferred_batch_sizes
    groups = [(group.kind, group.count) for group in config.instance_group]
    assert groups == [(model_config_pb2.ModelInstanceGroup.KIND_GPU, spec.instances_per_gpu)]
    assert len(config.model_warmup) == spec.warm_up
    accelerators = config.optimization.execution_accelerators.gpu_execution_accelerator
    modes = [accelerator.parameters["precision_mode"].lower() for accelerator in accelerators]
    assert modes == ([] if spec.precision == "original" else [spec.precision])


def test_a_setting_that_the_model_cannot_use_is_refused_with_the_fix() -> None:
    single = Signature(inputs=(Tensor("x", "FP32", (2,)),), outputs=(Tensor("y", "FP32", (2,)),))
    large = _SPEC.replace(batching=Batching(preferred_batch_sizes=(64,)))

    assert triton_config.problem_with(_SIGNATURE, _SPEC) == ""
    assert "does not support batching" in triton_config.problem_with(single, _SPEC)
    assert "Remove 64 from" in triton_config.problem_with(_SIGNATURE, large)


def test_default_settings_add_nothing_to_the_bucket() -> None:
    spec = ServingSpec(engine="triton", instance_type="g5.xlarge")

    assert _files(spec) == ServingFiles("p/")


def test_equal_settings_share_one_object() -> None:
    one, same = _files(_SPEC), _files(_SPEC)
    other = _files(ServingSpec(engine="triton", instance_type="g5.xlarge", precision="fp16"))

    assert one == same
    assert list(one.objects) == [f"p/adder/configs/{one.config_name}.pbtxt"]
    assert one.config_name != other.config_name
