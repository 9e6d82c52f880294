"""Tiny ONNX models, and the magika one, as the objects of a bucket."""

from importlib import util
from pathlib import Path

from onnx import TensorProto, helper

_CONFIG = """
backend: "onnxruntime"
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 2 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 2 ] }} ]
instance_group [ {{ kind: KIND_GPU count: 1 }} ]
dynamic_batching {{ }}
{extra}
"""
_WARMUP = """
model_warmup [ { name: "w" batch_size: 1
  inputs { key: "x" value: { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } } ]
"""


def adds(number: float, *, columns: int = 2) -> bytes:
    """y = x + number, for any batch of rows."""
    value = helper.make_tensor("number", TensorProto.FLOAT, [1], [number])
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", columns])
        for name in ("x", "y")
    )
    node = helper.make_node("Add", ["x", "number"], ["y"])
    graph = helper.make_graph([node], "adds", [x], [y], initializer=[value])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def echoes() -> bytes:
    """Text in, the same text out, through a string tensor."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.STRING, ["batch", 1]) for n in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "text", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def needs_five() -> bytes:
    """The length is free, but the convolution refuses fewer than five numbers."""
    kernel = helper.make_tensor("kernel", TensorProto.FLOAT, [1, 1, 5], [1.0] * 5)
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, "length"])
        for name in ("x", "y")
    )
    node = helper.make_node("Conv", ["x", "kernel"], ["y"])
    graph = helper.make_graph([node], "needs_five", [x], [y], initializer=[kernel])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def config(extra: str = "") -> bytes:
    return _CONFIG.format(extra=extra).encode()


def magika() -> bytes:
    spec = util.find_spec("magika")
    assert spec is not None
    assert spec.origin is not None
    return next((Path(spec.origin).parent / "models").glob("*/model.onnx")).read_bytes()


def objects() -> dict[str, bytes]:
    return {
        "one/adder/config.pbtxt": config(_WARMUP),
        "one/adder/1/model.onnx": adds(1),
        "two/adder/config.pbtxt": config(),
        "two/adder/1/model.onnx": adds(2),
        "bare/magika/1/model.onnx": magika(),
        "text/echo/1/model.onnx": echoes(),
        "broken/adder/config.pbtxt": config(),
        "broken/adder/1/model.onnx": b"this is not a graph",
        "lengths/sums/1/model.onnx": needs_five(),
        # It loads, and refuses every request that the configuration allows.
        "mismatched/adder/config.pbtxt": config(),
        "mismatched/adder/1/model.onnx": adds(1, columns=3),
        "plan/engine/config.pbtxt": b'backend: "tensorrt"',
        "plan/engine/1/model.plan": b"a plan",
    }
