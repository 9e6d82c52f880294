"""Operator sets that ONNX Runtime does not serve are refused with the call that converts the model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from deployments.registry.domain import onnx_loading
from deployments.states import VersionState
from tests.deployments.uploading import Upload

VERSION_CONVERTER = re.compile(
    r"onnx\.version_converter\.convert_version\(onnx\.load\('model\.onnx'\), (\d+)\)"
)


def old(opset: int) -> onnx.ModelProto:
    """Softsign by hand, with the broadcast of opsets before 7, as PyTorch 0.3 exported it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    legacy: dict[str, Any] = {"consumed_inputs": [0, 0]} if opset < 6 else {}
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], **({"consumed_inputs": [0]} if opset < 6 else {})),
        helper.make_node("Constant", [], ["c"], value=one),
        helper.make_node("Add", ["c", "a"], ["s"], broadcast=1, **legacy),
        helper.make_node("Div", ["x", "s"], ["y"], broadcast=1, **legacy),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def relu(opset: int, ir_version: int = 8) -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    return bytes(model.SerializeToString())


@pytest.mark.django_db
@pytest.mark.parametrize("opset", range(1, onnx_loading.OLDEST_OPSET))
def test_an_old_opset_is_refused_with_the_converter(verified: Upload, opset: int) -> None:
    version = verified(old(opset).SerializeToString())

    assert version.state == VersionState.FAILED
    assert (
        f"It has opset {opset}, and ONNX Runtime serves opset 7 and later" in version.state_reason
    )
    assert VERSION_CONVERTER.search(version.state_reason)
    assert "fp32" not in version.state_reason


@pytest.mark.django_db
def test_the_way_out_works(verified: Upload) -> None:
    model = old(6)
    refused = verified(model.SerializeToString())
    found = VERSION_CONVERTER.search(refused.state_reason)
    assert found

    converted = onnx.version_converter.convert_version(model, int(found[1]))

    assert verified(converted.SerializeToString(), model="again").state == VersionState.READY


@pytest.mark.django_db
def test_an_old_opset_whose_operators_are_all_there_is_served(verified: Upload) -> None:
    assert verified(relu(6, 3)).state == VersionState.READY


@pytest.mark.django_db
def test_a_newer_opset_is_converted_down(verified: Upload) -> None:
    version = verified(relu(99))

    assert version.state == VersionState.FAILED
    assert VERSION_CONVERTER.search(version.state_reason)


@pytest.mark.django_db
def test_a_newer_format_is_saved_as_an_older_one(verified: Upload) -> None:
    version = verified(relu(17, 60))

    assert version.state == VersionState.FAILED
    assert re.search(r"model\.ir_version = \d+", version.state_reason)
