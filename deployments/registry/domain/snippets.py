"""Code to call a version, with its inputs filled in: tritonclient over HTTP and gRPC, curl and a
notebook cell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from deployments.registry.domain.signatures import Signature, Tensor

_NUMPY: Final = {
    "BOOL": "bool",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "STRING": "object",
    "BF16": "float32",
}
_MAX_LISTED: Final = 8


@dataclass(frozen=True, slots=True)
class Snippet:
    name: str
    title: str
    text: str


def render(*, url: str, model: str, signature: Signature, has_grpc: bool) -> list[Snippet]:
    """Render snippets that call a deployment. `url` is its URL without the /v2 path."""
    grpc = [Snippet("grpc", "Python, gRPC", _grpc(url, model, signature))] if has_grpc else []
    return [
        Snippet("python", "Python, tritonclient", _tritonclient(url, model, signature)),
        *grpc,
        Snippet("curl", "curl, KServe v2", _curl(url, model, signature)),
        Snippet("notebook", "Notebook, httpx", _notebook(url, model, signature)),
    ]


def _shape(tensor: Tensor) -> list[int]:
    return [max(dim, 1) for dim in tensor.dims]


def _array(tensor: Tensor) -> str:
    if tensor.dtype == "STRING":
        return f'np.full({_shape(tensor)}, b"text", dtype=object)'
    dtype = _NUMPY.get(tensor.dtype, tensor.dtype.lower())
    return f"np.zeros({_shape(tensor)}, dtype=np.{dtype.replace('bool', 'bool_')})"


def _tritonclient(url: str, model: str, signature: Signature) -> str:
    lines = [
        "import numpy as np",
        "import tritonclient.http as triton",
        "",
        f"client = triton.InferenceServerClient({_address(url)!r}{_tls(url)})",
        *_inputs(signature),
        f"result = client.infer({model!r}, inputs)",
        *_outputs(signature),
    ]
    return "\n".join(lines) + "\n"


def _grpc(url: str, model: str, signature: Signature) -> str:
    """Render the call over gRPC. The path of a gRPC request is its method, so the deployment is named by a
    header.
    """
    host, _, deployment = _address(url).partition("/")
    if ":" not in host:
        host += ":443" if url.startswith("https://") else ":80"
    lines = [
        "import numpy as np",
        "import tritonclient.grpc as triton",
        "",
        f"client = triton.InferenceServerClient({host!r}{_tls(url)})",
        *_inputs(signature),
        f'deployment = {{"slipway-deployment": {deployment!r}}}',
        f"result = client.infer({model!r}, inputs, headers=deployment)",
        *_outputs(signature),
    ]
    return "\n".join(lines) + "\n"


def _inputs(signature: Signature) -> list[str]:
    lines = ["inputs = []"]
    for tensor in signature.inputs:
        name, dtype = tensor.name, tensor.protocol_dtype
        lines += [
            f"item = triton.InferInput({name!r}, {_shape(tensor)}, {dtype!r})",
            f"item.set_data_from_numpy({_array(tensor)})",
            "inputs.append(item)",
        ]
    return lines


def _outputs(signature: Signature) -> list[str]:
    return [f"print(result.as_numpy({tensor.name!r}))" for tensor in signature.outputs]


def _address(url: str) -> str:
    """Return the host, port and path without the scheme, as tritonclient expects."""
    return url.removeprefix("https://").removeprefix("http://")


def _tls(url: str) -> str:
    return ", ssl=True" if url.startswith("https://") else ""


def _body(signature: Signature) -> str:
    inputs = [
        {
            "name": tensor.name,
            "datatype": tensor.protocol_dtype,
            "shape": _shape(tensor),
            "data": "DATA",
        }
        for tensor in signature.inputs
    ]
    text = json.dumps({"inputs": inputs})
    for tensor in signature.inputs:
        text = text.replace('"DATA"', _data(tensor), 1)
    return text


def _data(tensor: Tensor) -> str:
    """Return the zeros of a tensor if they are few; otherwise a placeholder with the count."""
    count = 1
    for dim in _shape(tensor):
        count *= dim
    zero = '""' if tensor.dtype == "STRING" else "0"
    if count <= _MAX_LISTED:
        return "[" + ", ".join([zero] * count) + "]"
    return f"[{zero}, {zero}, … {count} numbers]"


def _curl(url: str, model: str, signature: Signature) -> str:
    body = _body(signature).replace("'", "'\\''")
    return f"curl -s {url}/v2/models/{model}/infer \\\n  -d '{body}'\n"


def _notebook(url: str, model: str, signature: Signature) -> str:
    lines = ["import httpx", "import numpy as np", "", "arrays = {"]
    lines += [f"    {tensor.name!r}: {_array(tensor)}," for tensor in signature.inputs]
    kinds = {tensor.name: tensor.protocol_dtype for tensor in signature.inputs}
    lines += [
        "}",
        f"kinds = {kinds!r}",
        "inputs = [",
        '    {"name": name, "datatype": kinds[name], "shape": list(array.shape),',
        '     "data": array.ravel().tolist()}',
        "    for name, array in arrays.items()",
        "]",
        f'answer = httpx.post("{url}/v2/models/{model}/infer", json={{"inputs": inputs}})',
        "answer.raise_for_status()",
        'answer.json()["outputs"]',
    ]
    return "\n".join(lines) + "\n"
