"""Small real ONNX files, built in memory."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def linear(*, dims: list[int | str] | None = None, domain: str = "", scale: float = 1.0) -> bytes:
    """x [N, 4] -> y [N, 2] by one matrix; `domain` makes its operator a custom one."""
    weights = numpy_helper.from_array(np.full((4, 2), scale, dtype=np.float32), name="w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"], domain=domain)
    shape = dims or ["batch", 4]
    graph = helper.make_graph(
        [node],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], 2])],
        [weights],
    )
    opsets = [helper.make_opsetid("", 17)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=opsets, producer_name="tests", ir_version=9)
    return bytes(model.SerializeToString())


def with_external_data() -> bytes:
    model = onnx.load_from_string(linear())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return bytes(model.SerializeToString())


def with_sequence_output() -> bytes:
    """What skl2onnx writes by default: a sequence of maps, which Triton does not serve."""
    model = onnx.load_from_string(linear())
    output = model.graph.output[0]
    kind = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    output.type.CopyFrom(helper.make_sequence_type_proto(kind))
    return bytes(model.SerializeToString())


def large(*, megabytes: int) -> bytes:
    """A linear model that carries this many million bytes of random weights."""
    model = onnx.load_from_string(linear())
    noise = np.random.default_rng(7).random(megabytes * 1_000_000 // 4, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(noise, name="ballast"))
    return bytes(model.SerializeToString())
