"""Show that a model takes batches: an item alone and the same item beside others, answered alike.

A first dimension of any size need not be one of a batch: it may be time, rows that attend to each
other, or what a softmax runs over. Joined requests are then answered wrongly, without an error.
For deployments/registry/gateways/sandbox.py only: this runs the uploaded model.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnxruntime

from deployments.registry.domain import onnx_loading, trial_inputs
from deployments.registry.domain.batching import Verdict
from deployments.registry.domain.not_servable import quoted
from deployments.registry.domain.trial_inputs import BFLOAT16, Input

_ITEMS: Final = 5
# Which items are joined: each in the first and in the last place, twins, and more than two.
_PAIRS: Final = ((0, 1), (1, 0))
_MORE: Final = ((2, 2), (3, 0, 4), (4, 3, 2, 1, 0))
# Of processor time, so that a busy machine decides nothing. Pairs are tried in any case.
_MOST_SECONDS: Final = 25.0
# Of the largest value of the item's own answer: kernels add up in another order for a batch.
_TOLERANCE: Final = {"float64": 1e-7, "float32": 1e-4, "float16": 1e-2, BFLOAT16: 4e-2}
_BFLOAT16_TYPE: Final = 16


class _CannotRun(Exception):
    """The model did not take these inputs."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """`kinds`: the element type of each output. `until`: in processor time of this process."""

    session: Any
    inputs: list[Input]
    kinds: dict[str, str]
    until: float

    def run(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """All items in one call. bfloat16 goes and comes as its bits."""
        feeds = {
            one.name: np.concatenate([item[one.name] for item in items]) for one in self.inputs
        }
        try:
            arrays = self._run(feeds)
        except onnx_loading.RUN_ERRORS as error:
            raise _CannotRun(onnx_loading.plain(str(error))) from error
        return dict(zip(self.kinds, arrays, strict=True))

    def _run(self, feeds: dict[str, Any]) -> list[Any]:
        names = list(self.kinds)
        if BFLOAT16 not in {*self.kinds.values(), *(one.kind for one in self.inputs)}:
            return list(self.session.run(names, feeds))
        values = {one.name: _value(feeds[one.name], one.kind) for one in self.inputs}
        return [_array(value) for value in self.session.run_with_ort_values(names, values)]


def show(argument: dict[str, Any]) -> dict[str, str]:
    """{"path", "largest_batch", "sizes"} to {"verdict", "reason"}; sizes are declared, by input."""
    session = onnx_loading.open_session(argument["path"])
    kinds = {value.name: trial_inputs.kind_of(value) for value in session.get_outputs()}
    until = time.process_time() + _MOST_SECONDS
    trial = _Trial(session, trial_inputs.inputs_of(session), kinds, until)
    verdict, reason = _judge(trial, argument["largest_batch"], argument["sizes"])
    return {"verdict": verdict, "reason": reason}


def _judge(trial: _Trial, largest: int, sizes: dict[str, list[int]]) -> tuple[Verdict, str]:
    if not all(one.shape and not isinstance(one.shape[0], int) for one in trial.inputs):
        return Verdict.NONE, ""
    if not trial_inputs.can_make(trial.inputs):
        return Verdict.UNKNOWN, "The model has inputs that can't be generated for a test."
    refusal = "The inputs are too large to test here."
    for items in _attempts(trial.inputs, sizes):
        try:
            alone = [trial.run([item]) for item in items[:2]]
        except _CannotRun as error:
            refusal = f"The model could not run with generated inputs. {error}"
            if time.process_time() > trial.until:
                break
            continue
        found = _compare(trial, items, alone, largest)
        if found is not None:
            return found
        refusal = "All generated items gave the same result, so the test is inconclusive."
    return Verdict.UNKNOWN, refusal


def _attempts(
    inputs: Sequence[Input], sizes: dict[str, list[int]]
) -> Iterator[list[dict[str, Any]]]:
    """Small sizes first, since they are quick, then the declared ones."""
    for chosen in ({}, sizes) if sizes else ({},):
        for policy in trial_inputs.POLICIES:
            made = [trial_inputs.make_item(inputs, policy, n, chosen) for n in range(_ITEMS)]
            items = [item for item in made if item is not None]
            if len(items) == _ITEMS:
                yield items


def _compare(
    trial: _Trial, items: Sequence[dict[str, Any]], alone: list[dict[str, Any]], largest: int
) -> tuple[Verdict, str] | None:
    """None when these items say nothing."""
    for name, array in alone[0].items():
        if array.ndim == 0 or len(array) != 1:
            return Verdict.DIFFERS, f"{quoted(name)} does not have one result for each item."
    unlike = _first_unlike(trial, trial.run([items[0]]), alone[0])
    if unlike:
        return Verdict.UNKNOWN, f"{quoted(unlike)} changes from run to run."
    for places in _PAIRS:
        differs = _differs(trial, items, alone, places)
        if differs:
            return Verdict.DIFFERS, differs
    if not _first_unlike(trial, alone[0], alone[1]):
        return None
    differs = _tried_with_more(trial, items, alone, largest)
    return (Verdict.DIFFERS, differs) if differs else (Verdict.SHOWN, "")


def _tried_with_more(
    trial: _Trial, items: Sequence[dict[str, Any]], alone: list[dict[str, Any]], largest: int
) -> str:
    """As long as there is time; the largest batch last, because it takes longest."""
    whole = tuple((3 * place) % _ITEMS for place in range(largest))
    seconds_each = 0.0
    for places in (*_MORE, whole):
        if not 2 <= len(places) <= largest:
            continue
        started = time.process_time()
        if started + seconds_each * len(places) > trial.until:
            return ""
        if len(alone) < len(items):
            alone += [trial.run([item]) for item in items[len(alone) :]]
        differs = _differs(trial, items, alone, places)
        if differs:
            return differs
        seconds_each = (time.process_time() - started) / len(places)
    return ""


def _differs(
    trial: _Trial,
    items: Sequence[dict[str, Any]],
    alone: Sequence[dict[str, Any]],
    places: Sequence[int],
) -> str:
    """In words what is different; empty when all is alike."""
    count = len(places)
    try:
        joined = trial.run([items[place] for place in places])
    except _CannotRun as error:
        return f"A batch of {count} items failed: {error}"
    for name, array in joined.items():
        if array.ndim == 0 or len(array) != count:
            return f"{quoted(name)} does not have one result for each of {count} items."
    for row, place in enumerate(places):
        own = {name: array[row : row + 1] for name, array in joined.items()}
        unlike = _first_unlike(trial, own, alone[place])
        if unlike:
            return (
                f"{quoted(unlike)} of the same item differs between a single request and "
                f"position {row + 1} in a batch of {count}."
            )
    return ""


def _first_unlike(trial: _Trial, one: dict[str, Any], other: dict[str, Any]) -> str:
    return next(
        (name for name in one if not _is_alike(one[name], other[name], trial.kinds[name])), ""
    )


def _is_alike(one: Any, other: Any, kind: str) -> bool:
    if one.shape != other.shape:
        return False
    if kind == BFLOAT16:
        one, other = _widened(one), _widened(other)
        tolerance = _TOLERANCE[BFLOAT16]
    else:
        tolerance = _TOLERANCE.get(str(one.dtype), 0.0)
    if not tolerance:
        return bool(np.array_equal(one, other))
    finite = other[np.isfinite(other)]
    most = float(np.max(np.abs(finite), initial=0.0))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * most, equal_nan=True))


def _widened(bits: Any) -> Any:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _value(array: Any, kind: str) -> Any:
    if kind == BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
            np.ascontiguousarray(array), _BFLOAT16_TYPE
        )
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _array(value: Any) -> Any:
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    count = int(np.prod(value.shape()))
    if not count:
        return np.zeros(value.shape(), dtype=np.uint16)
    pointer = ctypes.cast(value.data_ptr(), ctypes.POINTER(ctypes.c_uint16))
    return np.ctypeslib.as_array(pointer, (count,)).copy().reshape(value.shape())
