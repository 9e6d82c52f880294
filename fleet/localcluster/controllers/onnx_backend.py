"""Serves one ONNX file with ONNX Runtime; copied into pods as `model.py`.

Runs inside Triton's Python backend, so it imports nothing of this repository. The embedded
cluster needs it because its Triton has only the Python backend.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

Arrays = dict[str, Any]


class TritonPythonModel:
    """The class that Triton's Python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        version = Path(args["model_repository"]) / args["model_version"]
        file_name = config["parameters"]["onnx_file"]["string_value"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(version / file_name), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [item["name"] for item in config["input"]]
        self._outputs = [item["name"] for item in config["output"]]
        self._has_batches = int(config.get("max_batch_size", 0)) > 0

    def execute(self, requests: Sequence[Any]) -> list[Any]:
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
        return {name: _from_wire(item.as_numpy()) for name, item in tensors if item is not None}

    def _run(self, inputs: Arrays) -> Arrays:
        return dict(zip(self._outputs, self._session.run(self._outputs, inputs), strict=True))

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
            [pb_utils.Tensor(name, _to_wire(array)) for name, array in outputs.items()]
        )


def _can_be_joined(inputs: Sequence[Arrays]) -> bool:
    shapes = {tuple((name, array.shape[1:]) for name, array in item.items()) for item in inputs}
    return len(shapes) == 1


def _from_wire(array: Any) -> Any:
    """Triton hands strings over as bytes; ONNX Runtime wants text."""
    if array.dtype != np.object_:
        return array
    text = [value.decode() if isinstance(value, bytes) else value for value in array.ravel()]
    return np.array(text, dtype=np.object_).reshape(array.shape)


def _to_wire(array: Any) -> Any:
    if array.dtype.kind not in "OU":
        return np.ascontiguousarray(array)
    raw = [value if isinstance(value, bytes) else str(value).encode() for value in array.ravel()]
    return np.array(raw, dtype=np.object_).reshape(array.shape)
