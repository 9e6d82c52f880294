"""The tensors that are alive at once, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from deployments.registry.domain import input_sizes
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.sizing.domain import activations, onnx
from tests.fixtures import batching_models, large_models

_FLOAT = TensorProto.FLOAT
MIB = 2**20


def measured(folder: Path, model: Any, **inputs: list[int]) -> dict[str, Any]:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return activations.measure({"path": str(path), "inputs": inputs})


def silu(channels: int = 16) -> Any:
    """Convolution, sigmoid, product: its three results are alive together; then they are averaged."""
    weights = numpy_helper.from_array(np.ones((channels, 3, 3, 3), dtype=np.float32), "k")
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"]),
        helper.make_node("ReduceMean", ["m"], ["y"], axes=[2, 3], keepdims=0),
    ]
    return batching_models.model_of(
        nodes,
        [("x", _FLOAT, ["N", 3, "h", "w"])],
        [("y", _FLOAT, ["N", channels])],
        [weights],
    )


def test_what_is_read_no_more_goes_and_weights_do_not_count(tmp_path: Path) -> None:
    sizes = measured(tmp_path, silu(), x=[1, 3, 64, 64])

    plane = 64 * 64 * 4
    assert sizes == {"live": 3 * plane + 3 * 16 * plane, "is_complete": True}


@pytest.mark.parametrize("batch", [1, 4])
def test_free_sizes_of_images_count_as_declared_and_by_batch(tmp_path: Path, batch: int) -> None:
    sizes = measured(tmp_path, silu(), x=[batch, 3, 960, 960])

    assert sizes["live"] == batch * 960 * 960 * 4 * (3 + 48)


def test_the_largest_branch_counts(tmp_path: Path) -> None:
    def branch(times: int) -> Any:
        node = helper.make_node("Concat", ["x"] * times, ["z"], axis=0)
        sum_ = helper.make_node("ReduceSum", ["z"], ["r"], keepdims=0)
        result = helper.make_tensor_value_info("r", _FLOAT, [])
        return helper.make_graph([node, sum_], f"times_{times}", [], [result])

    nodes = [helper.make_node("If", ["is_so"], ["y"], then_branch=branch(8), else_branch=branch(2))]
    model = batching_models.model_of(
        nodes,
        [("is_so", TensorProto.BOOL, []), ("x", _FLOAT, ["N", 256])],
        [("y", _FLOAT, [])],
    )

    sizes = measured(tmp_path, model, is_so=[], x=[4, 256])

    x = 4 * 256 * 4
    assert sizes["live"] == 1 + x + 4 + 8 * x + 4


def test_a_large_file_is_added_up_without_its_weights(tmp_path: Path) -> None:
    path = large_models.write_large(tmp_path / "large.onnx", mebibytes=64)

    activations_of_file = activations.measure({"path": str(path), "inputs": {"x": [2, 8]}})

    # x, a row of 4,096 zeros, then eight of them.
    assert activations_of_file["is_complete"]
    assert activations_of_file["live"] == 2 * 8 * 4 + 4096 * 4 + 8 * 4


def test_the_range_is_from_what_is_alive_to_twice_that() -> None:
    estimate = onnx.estimate_vram(weights_bytes=100 * MIB, live_bytes=124 * MIB)

    assert (estimate.weights_mib, estimate.activations_mib, estimate.spread_mib) == (100, 248, 124)
    assert estimate.total_mib == 800


_IMAGES = Signature(
    inputs=(Tensor("image", "FP32", (-1, 3, -1, -1)), Tensor("scale", "FP32", (-1, 2))),
    outputs=(Tensor("boxes", "FP32", (-1, 4)),),
    max_batch_size=4,
)


def test_declared_sizes_come_first_and_assumptions_are_named() -> None:
    declared = input_sizes.largest(_IMAGES, {"image": [-1, 3, 960, 960]})
    assumed = input_sizes.largest(_IMAGES, {"image": [9, -1, 960, -1]})

    assert declared.dims == {"image": (4, 3, 960, 960), "scale": (4, 2)}
    assert (declared.assumed, declared.text) == ((), "image 4 x 3 x 960 x 960, scale 4 x 2")
    assert assumed.dims["image"] == (4, 3, 960, 640)
    assert assumed.assumed == ("image",)


def test_sizes_that_the_file_contradicts_are_reported_by_input() -> None:
    problems = input_sizes.problems_with(
        _IMAGES, {"image": [1, 1, 960, 960], "scale": [2], "picture": [1], "ok": []}
    )

    assert problems["image"] == "image is any x 3 x any x any in the file."
    assert problems["scale"] == "scale has 2 dimensions in the file, not 1."
    assert problems["picture"] == "The file has no input picture. Its inputs are image, scale."
