"""Serves one ONNX file with ONNX Runtime, or trees with Treelite; copied into pods as `model.py`.

Runs inside Triton's Python backend, so it imports nothing of this repository. The embedded
cluster needs it because its Triton has only the Python backend.

The backend was compiled for NumPy 1, and Python 3.13 has NumPy 2 only, whose arrays it misreads.
There tensors pass through DLPack, which does not depend on NumPy's memory layout.
"""

import ctypes
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

Arrays = dict[str, Any]
_IS_NUMPY_1 = np.lib.NumpyVersion(np.__version__) < "2.0.0b1"
_REFUSALS = (
    runtime.Fail,
    runtime.InvalidArgument,
    runtime.RuntimeException,
)
_BFLOAT16 = 16
_FLOATS = {"TYPE_FP16", "TYPE_FP32", "TYPE_FP64"}


class TritonPythonModel:
    """The class that Triton's Python backend instantiates."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        version = Path(args["model_repository"]) / args["model_version"]
        self._session = _open(version, config["parameters"])
        _refuse_strings(config)
        self._config = config
        self._check_id = config["parameters"]["readiness_check"]["string_value"]
        controls = config.get("sequence_batching", {}).get("control_input", [])
        self._inputs = [item["name"] for item in (*config["input"], *controls)]
        self._outputs = [item["name"] for item in config["output"]]
        # Triton has no tensors of rank 0: scalars have the shape [ 1 ] there.
        self._scalars = {item.name for item in self._session.get_inputs() if not item.shape}
        tensors = (*config["input"], *config["output"])
        self._bfloat16 = {item["name"] for item in tensors if item["data_type"] == "TYPE_BF16"}
        self._has_batches = int(config.get("max_batch_size", 0)) > 0

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        if any(request.request_id() == self._check_id for request in requests):
            return [self._respond(self._answer_check(self._read(item))) for item in requests]
        inputs = [self._read(request) for request in requests]
        if len(inputs) > 1 and self._has_batches and _can_be_joined(inputs):
            results = self._run_together(inputs)
        else:
            results = (self._run(item) for item in inputs)
        return [self._respond(result) for result in results]

    def _read(self, request: Any) -> Arrays:
        tensors = (
            (name, pb_utils.get_input_tensor_by_name(request, name)) for name in self._inputs
        )
        arrays = {
            name: _tensor_bits(item) if name in self._bfloat16 else _from_wire(item)
            for name, item in tensors
            if item is not None
        }
        scalars = {name: arrays[name].reshape(()) for name in self._scalars & arrays.keys()}
        return arrays | scalars

    def _answer_check(self, inputs: Arrays) -> Arrays:
        """Run the readiness check's zeros. A model that refuses guessed values or sizes is not broken,
        so the answer is zeros then.
        """
        try:
            return self._run(inputs)
        except _REFUSALS as error:
            if not _is_guessed(self._config):
                raise
            sys.stderr.write(f"The readiness check's guess was refused: {error}\n")
            return dict(_zeros_of_outputs(self._config))

    def _run(self, inputs: Arrays) -> Arrays:
        if self._bfloat16:
            return self._run_with_bits(inputs)
        return dict(zip(self._outputs, self._session.run(self._outputs, inputs), strict=True))

    def _run_with_bits(self, inputs: Arrays) -> Arrays:
        """NumPy has no bfloat16, so its bits travel in arrays of uint16."""
        values = {
            name: _ort_value(array)
            if name in self._bfloat16
            else onnxruntime.OrtValue.ortvalue_from_numpy(array)
            for name, array in inputs.items()
        }
        outputs = self._session.run_with_ort_values(self._outputs, values)
        return {
            name: _ort_bits(value) if name in self._bfloat16 else value.numpy()
            for name, value in zip(self._outputs, outputs, strict=True)
        }

    def _run_together(self, inputs: Sequence[Arrays]) -> Iterator[Arrays]:
        joined = {name: np.concatenate([item[name] for item in inputs]) for name in inputs[0]}
        outputs = self._run(joined)
        first = 0
        for item in inputs:
            last = first + len(next(iter(item.values())))
            yield {name: array[first:last] for name, array in outputs.items()}
            first = last

    def _respond(self, outputs: Arrays) -> Any:
        return pb_utils.InferenceResponse(
            [
                _bits_to_wire(name, array) if name in self._bfloat16 else _to_wire(name, array)
                for name, array in outputs.items()
            ]
        )


def _open(version: Path, parameters: dict[str, dict[str, str]]) -> Any:
    if "forest_file" in parameters:
        kind = parameters["model_type"]["string_value"]
        return _Forest(version / parameters["forest_file"]["string_value"], kind)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    path = version / parameters["onnx_file"]["string_value"]
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class _Forest:
    """Answers as Triton's FIL backend with probabilities, called like a session of ONNX Runtime."""

    def __init__(self, path: Path, kind: str) -> None:
        import treelite  # noqa: PLC0415  other models do without it

        if kind == "lightgbm":
            self._model = treelite.frontend.load_lightgbm_model(path)
        elif kind == "treelite_checkpoint":
            self._model = treelite.Model.deserialize(path)
        else:
            choice = kind.removeprefix("xgboost_").replace("ubj", "ubjson")
            self._model = treelite.frontend.load_xgboost_model(path, format_choice=choice)
        self._predict = treelite.gtil.predict

    def get_inputs(self) -> Sequence[Any]:
        return ()

    def run(self, _: Sequence[str], inputs: Arrays) -> list[Any]:
        (rows,) = inputs.values()
        rows = rows.astype(self._model.input_type)
        scores = self._predict(self._model, rows, nthread=1)
        return [scores.reshape(len(rows), -1).astype(np.float32)]


def _ort_value(bits: Any) -> Any:
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
        np.ascontiguousarray(bits), _BFLOAT16
    )


def _tensor_bits(tensor: Any) -> Any:
    return _ort_bits(onnxruntime.OrtValue.from_dlpack(tensor.to_dlpack()))


def _ort_bits(value: Any) -> Any:
    shape = value.shape()
    count = int(np.prod(shape))
    if not count:
        return np.zeros(shape, dtype=np.uint16)
    pointer = ctypes.cast(value.data_ptr(), ctypes.POINTER(ctypes.c_uint16))
    return np.ctypeslib.as_array(pointer, (count,)).copy().reshape(shape)


def _bits_to_wire(name: str, array: Any) -> Any:
    """Export through ONNX Runtime, which declares the type to DLPack."""
    return pb_utils.Tensor.from_dlpack(name, _Bits(np.atleast_1d(array)))


class _Bits:
    """Keeps the array alive as long as its OrtValue."""

    def __init__(self, array: Any) -> None:
        self._array = np.ascontiguousarray(array)
        self._value = _ort_value(self._array)

    def __dlpack__(self, **options: Any) -> Any:
        return self._value._get_c_value().to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _can_be_joined(inputs: Sequence[Arrays]) -> bool:
    shapes = {tuple((name, array.shape[1:]) for name, array in item.items()) for item in inputs}
    return len(shapes) == 1


def _refuse_strings(config: dict[str, Any]) -> None:
    """Raise where tensors pass through DLPack, which has no strings."""
    names = [
        item["name"]
        for item in (*config["input"], *config["output"])
        if item["data_type"] == "TYPE_STRING"
    ]
    if names and not _IS_NUMPY_1:
        raise pb_utils.TritonModelException(
            f"{names[0]} is a string tensor, which the embedded Triton reads under Python 3.11 and "
            "3.12 only. Start the demo with one of them: make demo PYTHON=python3.12"
        )


def _from_wire(tensor: Any) -> Any:
    """Triton passes strings as bytes; ONNX Runtime takes str."""
    array = tensor.as_numpy() if _IS_NUMPY_1 else np.from_dlpack(tensor)
    if array.dtype != np.object_:
        return array
    text = [value.decode() if isinstance(value, bytes) else value for value in array.ravel()]
    return np.array(text, dtype=np.object_).reshape(array.shape)


def _to_wire(name: str, array: Any) -> Any:
    array = np.atleast_1d(array)
    if array.dtype.kind in "OU":
        raw = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel()]
        return pb_utils.Tensor(name, np.array(raw, dtype=np.object_).reshape(array.shape))
    contiguous = np.ascontiguousarray(array)
    if _IS_NUMPY_1:
        return pb_utils.Tensor(name, contiguous)
    return pb_utils.Tensor.from_dlpack(name, _Exported(contiguous))


class _Exported:
    """Exports an array through DLPack.

    Triton frees the memory, but renames the used capsule, so NumPy's destructor of the capsule
    would report an error for each tensor.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._array.__dlpack__()
        ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _is_guessed(config: dict[str, Any]) -> bool:
    return any(
        item["data_type"] not in _FLOATS or any(int(size) < 0 for size in item["dims"])
        for item in config["input"]
    )


def _zeros_of_outputs(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for item in config["output"]:
        batch = [1] if int(config.get("max_batch_size", 0)) > 0 else []
        shape = [*batch, *(max(int(size), 1) for size in item["dims"])]
        if item["data_type"] == "TYPE_BF16":
            yield item["name"], np.zeros(shape, dtype=np.uint16)
            continue
        kind = np.dtype(pb_utils.triton_string_to_numpy(item["data_type"]))
        filler = b"" if kind == np.object_ else 0
        yield item["name"], np.full(shape, filler, dtype=kind)
