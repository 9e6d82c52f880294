"""Prepares a pod's private copy of a Triton repository for a Triton that has the Python backend only.

Models of the onnxruntime backend become Python models that run ONNX Runtime, those of the fil backend
Python models that score with Treelite; inputs, outputs, batching, warm-up and every other field stay.
Models of the Python backend run on the CPU.
Models of other backends are not changed, and Triton reports that the backend is missing.
"""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tritonclient.grpc import model_config_pb2

logger = logging.getLogger(__name__)

# The id of the request that answer_check.py sends before a container becomes ready.
READINESS_CHECK = "slipway-readiness-check"
READINESS_CHECK_PARAMETER = "readiness_check"
CONFIG_FILE = "config.pbtxt"
_DEFAULT_MODEL_FILE = "model.onnx"
_ONNX_PLATFORM = "onnxruntime_onnx"
_ONNX_BACKEND = "onnxruntime"
_FIL_BACKEND = "fil"
_PYTHON_BACKEND = "python"
# By the backend's parameter model_type (triton-inference-server/fil_backend, docs/model_config.md).
_FOREST_FILES = {
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}
# What Triton's own auto-complete gives a model whose first dimension is free.
_AUTO_BATCH_SIZE = 4
_DATA_TYPES = {
    onnx.TensorProto.BOOL: "TYPE_BOOL",
    onnx.TensorProto.UINT8: "TYPE_UINT8",
    onnx.TensorProto.UINT16: "TYPE_UINT16",
    onnx.TensorProto.UINT32: "TYPE_UINT32",
    onnx.TensorProto.UINT64: "TYPE_UINT64",
    onnx.TensorProto.INT8: "TYPE_INT8",
    onnx.TensorProto.INT16: "TYPE_INT16",
    onnx.TensorProto.INT32: "TYPE_INT32",
    onnx.TensorProto.INT64: "TYPE_INT64",
    onnx.TensorProto.FLOAT16: "TYPE_FP16",
    onnx.TensorProto.FLOAT: "TYPE_FP32",
    onnx.TensorProto.DOUBLE: "TYPE_FP64",
    onnx.TensorProto.STRING: "TYPE_STRING",
    onnx.TensorProto.BFLOAT16: "TYPE_BF16",
}


def prepare(repository: Path) -> None:
    """Rewrite the repository in place, idempotently."""
    for model in sorted(repository.iterdir()):
        if model.is_dir():
            _prepare_model(model)


def _prepare_model(model: Path) -> None:
    """Prepare a model, including the configurations in `configs/`, from which --model-config-name selects."""
    for config_path in (model / CONFIG_FILE, *sorted((model / "configs").glob("*.pbtxt"))):
        _prepare_config(model, config_path)


def _prepare_config(model: Path, config_path: Path) -> None:
    try:
        config = read_config(config_path)
    except text_format.ParseError as error:
        # Triton refuses the file too, and its message belongs in the pod's log.
        logger.warning("%s of %s was not changed: %s", config_path.name, model.name, error)
        return
    if config.backend == _FIL_BACKEND:
        kind = config.parameters["model_type"].string_value
        file = config.default_model_filename or _FOREST_FILES.get(kind, "")
        _use_python_backend(config, "forest_file", file)
        _write(model, config_path, config)
        return
    if config.backend == _PYTHON_BACKEND:
        _use_cpu(config)
        config_path.write_text(text_format.MessageToString(config))
        return
    onnx_file = config.default_model_filename or _DEFAULT_MODEL_FILE
    versions = [version for version in _versions(model) if (version / onnx_file).exists()]
    if not _is_onnx(config, has_onnx_file=bool(versions)):
        return
    loaded_file = _DEFAULT_MODEL_FILE
    if versions:
        loaded_file = _model_file(versions[-1], onnx_file)
        _complete(config, versions[-1] / loaded_file)
    _use_python_backend(config, "onnx_file", loaded_file)
    _write(model, config_path, config)


def _write(model: Path, config_path: Path, config: Any) -> None:
    for version in _versions(model):
        shutil.copyfile(python_backend_source(), version / "model.py")
    config_path.write_text(text_format.MessageToString(config))


def python_backend_source() -> Path:
    """Return the path of the module, which only Triton can import."""
    return Path(__file__).with_name("python_backend.py")


def read_config(path: Path) -> Any:
    """Read a configuration, which is empty if the file is absent. Raises text_format.ParseError."""
    config = model_config_pb2.ModelConfig()
    if path.is_file():
        text_format.Parse(path.read_text(), config)
    return config


def _versions(model: Path) -> list[Path]:
    versions = (item for item in model.iterdir() if item.is_dir() and item.name.isdigit())
    return sorted(versions, key=lambda item: int(item.name))


def _is_onnx(config: Any, *, has_onnx_file: bool) -> bool:
    if config.backend or config.platform:
        return bool(config.backend == _ONNX_BACKEND or config.platform == _ONNX_PLATFORM)
    return has_onnx_file


def _model_file(version: Path, name: str) -> str:
    """Return the model's file. `model.onnx` may be a directory that holds the graph and its external data."""
    path = version / name
    return f"{name}/{_DEFAULT_MODEL_FILE}" if path.is_dir() else name


def _use_python_backend(config: Any, parameter: str, file: str) -> None:
    """`parameter` tells python_backend.py how to load the file."""
    config.backend = _PYTHON_BACKEND
    config.ClearField("platform")
    config.ClearField("default_model_filename")
    # Only the ONNX backend has accelerators, and GPU instances need a Triton with a GPU.
    if config.HasField("optimization"):
        config.optimization.ClearField("execution_accelerators")
    config.parameters[parameter].string_value = file
    config.parameters[READINESS_CHECK_PARAMETER].string_value = READINESS_CHECK
    _use_cpu(config)


def _use_cpu(config: Any) -> None:
    groups = list(config.instance_group) or [config.instance_group.add()]
    for group in groups:
        group.kind = model_config_pb2.ModelInstanceGroup.KIND_CPU
        group.count = max(group.count, 1)
        group.ClearField("gpus")


def _complete(config: Any, onnx_path: Path) -> None:
    """Fill in what the author left to Triton's auto-complete."""
    if config.input and config.output:
        return
    try:
        graph = onnx.load(str(onnx_path), load_external_data=False).graph
    except DecodeError as error:
        # ONNX Runtime refuses it too, and its message reaches the pod's log.
        logger.warning("%s is not an ONNX file: %s", onnx_path, error)
        return
    weights = {item.name for item in graph.initializer}
    inputs = [item for item in graph.input if item.name not in weights]
    tensors = [*inputs, *graph.output]
    is_batched = bool(tensors) and all(_has_free_first_dimension(item) for item in tensors)
    if is_batched and not config.max_batch_size:
        config.max_batch_size = _AUTO_BATCH_SIZE
        if config.WhichOneof("scheduling_choice") is None:
            config.dynamic_batching.SetInParent()
    skipped = 1 if config.max_batch_size else 0
    _describe(config.input, inputs, skipped)
    _describe(config.output, graph.output, skipped)


def _describe(target: Any, tensors: Any, skipped_dimensions: int) -> None:
    if target:
        return
    for tensor in tensors:
        entry = target.add()
        entry.name = tensor.name
        kind = _DATA_TYPES.get(tensor.type.tensor_type.elem_type, "TYPE_INVALID")
        entry.data_type = model_config_pb2.DataType.Value(kind)
        dims = list(_dimensions(tensor))[skipped_dimensions:]
        # Triton refuses empty dims: a scalar is [ 1 ], with a reshape if it is one per batch item.
        entry.dims.extend(dims or [1])
        if not dims and skipped_dimensions:
            entry.reshape.SetInParent()


def _dimensions(tensor: Any) -> Iterator[int]:
    for dimension in tensor.type.tensor_type.shape.dim:
        yield dimension.dim_value if dimension.HasField("dim_value") else -1


def _has_free_first_dimension(tensor: Any) -> bool:
    return next(_dimensions(tensor), 0) == -1
