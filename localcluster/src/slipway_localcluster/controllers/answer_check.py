"""Sends one inference of zeros to every ONNX model of a ready Triton.

Triton is ready as soon as its models are loaded, even if none can answer: a Python backend that
was compiled for another NumPy refuses each request.
"""

import http.client
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from slipway_localcluster.controllers import model_repository
from slipway_localcluster.controllers.processes import LOCALHOST

_TIMEOUT_SECONDS = 60.0
_BYTES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FP16", "BF16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FP64"), 8),
    # An empty string is its length only.
    "STRING": 4,
}


def failure_of(port: int, repositories: Sequence[Path]) -> str:
    """Return why a model of the Triton at this port does not answer. Empty if each answered once.

    Model names come from the repository, because Triton's own index may be closed to clients.
    """
    connection = http.client.HTTPConnection(LOCALHOST, port, timeout=_TIMEOUT_SECONDS)
    try:
        for name, config in _models(repositories):
            path = f"/v2/models/{quote(name, safe='')}"
            if _send(connection, "GET", f"{path}/ready")[0] != 200:
                continue
            status, answer = _send(connection, "POST", f"{path}/infer", *_request(config))
            if status != 200:
                text = answer.decode(errors="replace")
                return f"The model {name} was loaded but does not answer ({status}): {text}"
    except (OSError, http.client.HTTPException) as error:
        return f"Triton does not answer the readiness check: {error!r}"
    finally:
        connection.close()
    return ""


def _models(repositories: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    for repository in repositories:
        for model in sorted(repository.iterdir()):
            try:
                config = model_repository.read_config(model / model_repository.CONFIG_FILE)
            except text_format.ParseError:
                # Triton did not load it either.
                continue
            if model_repository.READINESS_CHECK_PARAMETER in config.parameters:
                yield model.name, config


def _request(config: Any) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a request with zeros, in Triton's binary form."""
    batch = [1] if config.max_batch_size else []
    tensors = [_zeros(tensor, batch) for tensor in config.input]
    head = json.dumps(
        {
            "id": model_repository.READINESS_CHECK,
            "parameters": {"binary_data_output": True, **_sequence(config)},
            "inputs": [described for described, _ in tensors],
        }
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return head + b"".join(data for _, data in tensors), headers


def _zeros(tensor: Any, batch: Sequence[int]) -> tuple[dict[str, Any], bytes]:
    """Return a tensor of zeros, or of empty strings. A free dimension gets size 1."""
    shape = [*batch, *(max(size, 1) for size in tensor.dims)]
    kind = model_config_pb2.DataType.Name(tensor.data_type).removeprefix("TYPE_")
    data = bytes(_BYTES[kind] * math.prod(shape))
    described = {
        "name": tensor.name,
        "datatype": "BYTES" if kind == "STRING" else kind,
        "shape": shape,
        "parameters": {"binary_data_size": len(data)},
    }
    return described, data


def _sequence(config: Any) -> dict[str, Any]:
    if config.WhichOneof("scheduling_choice") != "sequence_batching":
        return {}
    return {"sequence_id": 1, "sequence_start": True, "sequence_end": True}


def _send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    return response.status, response.read()
