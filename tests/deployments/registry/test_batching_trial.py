"""A batch dimension is shown, never guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from deployments.registry.domain import batching, batching_trial
from deployments.registry.domain.batching import BatchingVerdict
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH
from tests.fixtures import batching_models, large_models
from tests.fixtures.batching_models import BatchingModel

_FLOAT = TensorProto.FLOAT


def tried(
    folder: Path, build: Callable[[], Any], *, largest: int = 32, sizes: Any = None
) -> dict[str, str]:
    path = folder / "model.onnx"
    path.write_bytes(build().SerializeToString())
    return batching_trial.run({"path": str(path), "max_batch_size": largest, "sizes": sizes or {}})


@pytest.mark.parametrize("model", batching_models.SERVED, ids=lambda one: one.name)
def test_only_models_that_answer_each_item_alike_take_batches(
    tmp_path: Path, model: BatchingModel
) -> None:
    trial = tried(tmp_path, model.build)

    assert (trial["verdict"] == BatchingVerdict.SHOWN) == model.supports_batching
    if not model.supports_batching and model.shape:
        assert trial["verdict"] == BatchingVerdict.DIFFERS
        assert trial["reason"].startswith("“")


def test_answers_that_differ_from_run_to_run_show_nothing(tmp_path: Path) -> None:
    trial = tried(tmp_path, batching_models.random_noise)

    assert trial == {"verdict": BatchingVerdict.UNKNOWN, "reason": "“y” changes from run to run."}


def leaks_beyond(count: int) -> Callable[[], Any]:
    """Right up to so many items; above, every answer has something of the others."""

    def build() -> Any:
        nodes = [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "zero"], ["rows"]),
            helper.make_node("Greater", ["rows", "most"], ["is_more"]),
            helper.make_node("Cast", ["is_more"], ["factor"], to=_FLOAT),
            helper.make_node("ReduceSum", ["x", "axis"], ["sum"], keepdims=1),
            helper.make_node("Mul", ["sum", "factor"], ["leak"]),
            helper.make_node("Add", ["x", "leak"], ["y"]),
        ]
        constants = [
            numpy_helper.from_array(np.array(0), "zero"),
            numpy_helper.from_array(np.array(count), "most"),
            numpy_helper.from_array(np.array([0]), "axis"),
        ]
        return batching_models.model_of(
            nodes, [("x", _FLOAT, ["N", 3])], [("y", _FLOAT, ["N", 3])], constants
        )

    return build


@pytest.mark.parametrize(
    ("beyond", "largest", "verdict"),
    [
        (1, 32, BatchingVerdict.DIFFERS),
        (4, 32, BatchingVerdict.DIFFERS),
        (31, 32, BatchingVerdict.DIFFERS),
        (32, 32, BatchingVerdict.SHOWN),
        (4, 4, BatchingVerdict.SHOWN),
    ],
)
def test_it_is_tried_up_to_the_largest_batch(
    tmp_path: Path, beyond: int, largest: int, verdict: BatchingVerdict
) -> None:
    assert tried(tmp_path, leaks_beyond(beyond), largest=largest)["verdict"] == verdict


def refuses_all_but(width: int) -> Callable[[], Any]:
    """A free second dimension that has to be of one size all the same."""

    def build() -> Any:
        weights = numpy_helper.from_array(np.ones((width, 2), dtype=np.float32), "w")
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        graph = helper.make_graph(
            [node],
            "tests",
            [helper.make_tensor_value_info("x", _FLOAT, ["N", "width"])],
            [helper.make_tensor_value_info("y", _FLOAT, ["N", 2])],
            [weights],
        )
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    return build


def test_sizes_that_cannot_be_derived_come_from_the_declaration(tmp_path: Path) -> None:
    guessed = tried(tmp_path, refuses_all_but(37))
    declared = tried(tmp_path, refuses_all_but(37), sizes={"x": [-1, 37]})

    assert guessed["verdict"] == BatchingVerdict.UNKNOWN
    assert guessed["reason"].startswith("The model could not run with generated inputs.")
    assert declared == {"verdict": BatchingVerdict.SHOWN, "reason": ""}


def test_one_answer_for_everything_shows_nothing(tmp_path: Path) -> None:
    def build() -> Any:
        nodes = [helper.make_node("Mul", ["x", "nil"], ["y"])]
        nil = numpy_helper.from_array(np.zeros(1, dtype=np.float32), "nil")
        return batching_models.model_of(
            nodes, [("x", _FLOAT, ["N", 3])], [("y", _FLOAT, ["N", 3])], [nil]
        )

    trial = tried(tmp_path, build)

    assert trial["verdict"] == BatchingVerdict.UNKNOWN
    assert "the same result" in trial["reason"]


def test_inputs_too_large_to_make_up_are_not_tried(tmp_path: Path) -> None:
    def build() -> Any:
        nodes = [helper.make_node("Identity", ["x"], ["y"])]
        shape: list[int | str] = ["N", 4096, 4096]
        return batching_models.model_of(nodes, [("x", _FLOAT, shape)], [("y", _FLOAT, shape)])

    trial = tried(tmp_path, build)

    assert trial == {
        "verdict": BatchingVerdict.UNKNOWN,
        "reason": "The inputs are too large to test here.",
    }


@pytest.mark.parametrize(
    ("verdict", "declared", "size"),
    [
        (BatchingVerdict.SHOWN, None, 8),
        (BatchingVerdict.SHOWN, True, 8),
        (BatchingVerdict.SHOWN, False, 0),
        (BatchingVerdict.UNKNOWN, None, 0),
        (BatchingVerdict.UNKNOWN, True, 8),
        (BatchingVerdict.UNKNOWN, False, 0),
        (BatchingVerdict.DIFFERS, None, 0),
        (BatchingVerdict.DIFFERS, True, 0),
        (BatchingVerdict.DIFFERS, False, 0),
        (BatchingVerdict.NONE, True, 0),
    ],
)
def test_a_declaration_decides_only_where_nothing_was_shown(
    verdict: BatchingVerdict, declared: bool | None, size: int
) -> None:
    decision = batching.decide(verdict, "Reason.", is_declared=declared, largest=8)

    assert decision.max_batch_size == size
    assert decision.reason.startswith("up to 8" if size else "off")


def test_the_large_model_is_a_real_one_and_mostly_a_hole(tmp_path: Path) -> None:
    path = large_models.write_large(tmp_path / "model.onnx", mebibytes=8)

    onnx.checker.check_model(str(path), full_check=True)
    trial = batching_trial.run(
        {"path": str(path), "max_batch_size": DEFAULT_MAX_BATCH, "sizes": {}}
    )

    assert path.stat().st_size > 8 * 2**20 > 100 * 512 > path.stat().st_blocks * 512
    assert trial["verdict"] == BatchingVerdict.SHOWN
