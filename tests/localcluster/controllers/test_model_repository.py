"""Model repositories rewritten for a Triton without an ONNX backend."""

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from slipway_localcluster.controllers import model_repository
from tests.localcluster.controllers import onnx_models


def _lay_out(root: Path, prefix: str) -> Path:
    for key, body in onnx_models.objects().items():
        if key.startswith(f"{prefix}/"):
            path = root / key.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
    return root


def _config(model: Path) -> Any:
    text = (model / "config.pbtxt").read_text()
    return text_format.Parse(text, model_config_pb2.ModelConfig())


def test_onnx_becomes_python_and_keeps_everything_else(tmp_path: Path) -> None:
    repository = _lay_out(tmp_path, "one")

    model_repository.prepare(repository)

    config = _config(repository / "adder")
    assert config.backend == "python"
    assert config.max_batch_size == 8
    assert [item.name for item in config.input] == ["x"]
    assert config.HasField("dynamic_batching")
    assert config.model_warmup[0].name == "w"
    assert config.instance_group[0].kind == model_config_pb2.ModelInstanceGroup.KIND_CPU
    assert config.parameters["onnx_file"].string_value == "model.onnx"
    assert (repository / "adder" / "1" / "model.py").is_file()


def test_a_missing_config_is_derived_from_the_graph(tmp_path: Path) -> None:
    repository = _lay_out(tmp_path, "bare")

    model_repository.prepare(repository)

    config = _config(repository / "magika")
    assert config.max_batch_size == 4
    assert (config.input[0].name, list(config.input[0].dims)) == ("bytes", [2048])
    assert config.input[0].data_type == model_config_pb2.TYPE_INT32
    assert (config.output[0].name, list(config.output[0].dims)) == ("target_label", [214])
    assert config.HasField("dynamic_batching")


def test_a_python_model_runs_on_the_cpu_with_its_own_code(tmp_path: Path) -> None:
    version = tmp_path / "own" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text("class TritonPythonModel: pass")
    text = 'backend: "python" max_batch_size: 4 instance_group { kind: KIND_GPU count: 2 gpus: 0 }'
    (tmp_path / "own" / "config.pbtxt").write_text(text)

    model_repository.prepare(tmp_path)

    config = _config(tmp_path / "own")
    (group,) = config.instance_group
    cpu = model_config_pb2.ModelInstanceGroup.KIND_CPU
    assert (group.kind, group.count, list(group.gpus)) == (cpu, 2, [])
    assert not config.parameters
    assert (version / "model.py").read_text() == "class TritonPythonModel: pass"


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    repository = _lay_out(tmp_path, "one")
    model_repository.prepare(repository)
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}

    model_repository.prepare(repository)

    after = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("text", [b'backend: "tensorrt"', b"this is { not a config"])
def test_other_backends_and_broken_configs_are_not_changed(tmp_path: Path, text: bytes) -> None:
    model = tmp_path / "engine"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_bytes(text)

    model_repository.prepare(tmp_path)

    assert (model / "config.pbtxt").read_bytes() == text
    assert list((model / "1").iterdir()) == []
