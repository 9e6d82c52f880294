"""A model whose version n adds n to its input: which version answered shows in the answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import numpy as np
import onnx
import tritonclient.grpc as triton_grpc
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from deployments.models import Model, ModelVersion
from deployments.registry.gateways import object_store
from deployments.states import VersionState
from portal.core import clock
from tests import recorded

_CONFIG = """
name: "adder"
backend: "onnxruntime"
max_batch_size: 0
input [{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
"""


def onnx_file(amount: float) -> bytes:
    """A model that adds the amount."""
    node = helper.make_node("Add", ["x", "c"], ["y"])
    graph = helper.make_graph(
        [node],
        "adder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [helper.make_tensor("c", TensorProto.FLOAT, [1], [amount])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def version(model: Model, number: int, bucket: str, client: Any, user: Any) -> ModelVersion:
    """Laid out as the registry does it; version n adds n."""
    name = model.name
    prefix = f"repositories/vision/{name}/{number}/abcdefabcdef/"
    config = _CONFIG.replace('"adder"', f'"{name}"').encode()
    client.put_object(Bucket=bucket, Key=f"{prefix}{name}/config.pbtxt", Body=config)
    client.put_object(Bucket=bucket, Key=f"{prefix}{name}/1/model.onnx", Body=onnx_file(number))
    return ModelVersion.objects.create(
        model=model,
        number=number,
        state=VersionState.READY,
        filename="adder.onnx",
        declared_size_bytes=1,
        size_bytes=len(onnx_file(number)),
        bucket=bucket,
        upload_prefix="uploads/x/",
        sha256=str(number) * 64,
        repository_prefix=prefix,
        laid_out=recorded.rows_of(object_store.store(), prefix),
        signature={
            "inputs": [{"name": "x", "dtype": "FP32", "dims": [1]}],
            "outputs": [{"name": "y", "dtype": "FP32", "dims": [1]}],
        },
        created_by=user,
        created_at=clock.now(),
    )


def answers(url: str, count: int, model: str = "adder") -> Counter[float]:
    """What 1 becomes, so many times; -1 for anything but an answer."""
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.0]}]}
    counter: Counter[float] = Counter()
    with httpx.Client(verify=False) as client:
        for _ in range(count):
            answer = client.post(f"{url}/v2/models/{model}/infer", json=body)
            is_good = answer.status_code == 200
            counter[answer.json()["outputs"][0]["data"][0] if is_good else -1.0] += 1
    return counter


def grpc_answers(url: str, count: int, model: str = "adder") -> Counter[float]:
    """As `answers`, by gRPC."""
    host, _, deployment = url.partition("://")[2].partition("/")
    tensor = triton_grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.array([1.0], dtype=np.float32))
    counter: Counter[float] = Counter()
    with triton_grpc.InferenceServerClient(host) as client:
        for _ in range(count):
            try:
                result = client.infer(model, [tensor], headers={"slipway-deployment": deployment})
            except InferenceServerException:
                counter[-1.0] += 1
            else:
                counter[float(result.as_numpy("y")[0])] += 1
    return counter
