"""Try whether a model supports batching: an item must give the same result alone and in a batch.

A dynamic first dimension is not always a batch dimension: it may be time, rows that attend to each
other, or the axis of a softmax. Batched requests would then return wrong results without an error.
Run in deployments/registry/gateways/sandbox.py only: this executes the uploaded model.
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
from deployments.registry.domain.batching import BatchingVerdict
from deployments.registry.domain.not_servable import quote
from deployments.registry.domain.trial_inputs import BFLOAT16, Input

_ITEMS: Final = 5
# Batches by item number: each item first and last, an item twice, and more than two items.
_PAIRS: Final = ((0, 1), (1, 0))
_LARGER_BATCHES: Final = ((2, 2), (3, 0, 4), (4, 3, 2, 1, 0))
# Of CPU time, so that the load of the machine does not matter. Pairs are always tried.
_MAX_SECONDS: Final = 25.0
# Relative to the largest value of the single result: kernels sum batches in a different order.
_TOLERANCE: Final = {"float64": 1e-7, "float32": 1e-4, "float16": 1e-2, BFLOAT16: 4e-2}
_BFLOAT16_TYPE: Final = 16


class _CannotRun(Exception):
    """The model failed with these inputs."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A trial of a model with batches. `kinds` are the element types of the outputs; `deadline` is in CPU time
    of this process.
    """

    session: Any
    inputs: list[Input]
    kinds: dict[str, str]
    deadline: float

    def run(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Run all items in one call. bfloat16 is passed as its bits."""
        feeds = {
            tensor.name: np.concatenate([item[tensor.name] for item in items])
            for tensor in self.inputs
        }
        try:
            arrays = self._run(feeds)
        except onnx_loading.RUN_ERRORS as error:
            raise _CannotRun(onnx_loading.plain(str(error))) from error
        return dict(zip(self.kinds, arrays, strict=True))

    def _run(self, feeds: dict[str, Any]) -> list[Any]:
        names = list(self.kinds)
        if BFLOAT16 not in {*self.kinds.values(), *(tensor.kind for tensor in self.inputs)}:
            return list(self.session.run(names, feeds))
        values = {tensor.name: _value(feeds[tensor.name], tensor.kind) for tensor in self.inputs}
        return [_array(value) for value in self.session.run_with_ort_values(names, values)]


def run(argument: dict[str, Any]) -> dict[str, str]:
    """Run the trial in the sandbox: {"path", "max_batch_size", "sizes"} to {"verdict", "reason"}. `sizes` are
    declared, by input.
    """
    session = onnx_loading.open_session(argument["path"])
    kinds = {value.name: trial_inputs.kind_of(value) for value in session.get_outputs()}
    deadline = time.process_time() + _MAX_SECONDS
    trial = _Trial(session, trial_inputs.inputs_of(session), kinds, deadline)
    verdict, reason = _decide(trial, argument["max_batch_size"], argument["sizes"])
    return {"verdict": verdict, "reason": reason}


def _decide(
    trial: _Trial, largest: int, sizes: dict[str, list[int]]
) -> tuple[BatchingVerdict, str]:
    if not all(tensor.shape and not isinstance(tensor.shape[0], int) for tensor in trial.inputs):
        return BatchingVerdict.NONE, ""
    if not trial_inputs.can_make(trial.inputs):
        return BatchingVerdict.UNKNOWN, "The model has inputs that can't be generated for a test."
    refusal = "The inputs are too large to test here."
    for items in _attempts(trial.inputs, sizes):
        try:
            alone = [trial.run([item]) for item in items[:2]]
        except _CannotRun as error:
            refusal = f"The model could not run with generated inputs. {error}"
            if time.process_time() > trial.deadline:
                break
            continue
        verdict = _compare(trial, items, alone, largest)
        if verdict is not None:
            return verdict
        refusal = "All generated items gave the same result, so the test is inconclusive."
    return BatchingVerdict.UNKNOWN, refusal


def _attempts(
    inputs: Sequence[Input], sizes: dict[str, list[int]]
) -> Iterator[list[dict[str, Any]]]:
    """Return the sizes to try: small sizes first, because they are fast, then the declared ones."""
    for chosen in ({}, sizes) if sizes else ({},):
        for policy in trial_inputs.POLICIES:
            generated = [trial_inputs.make_item(inputs, policy, n, chosen) for n in range(_ITEMS)]
            items = [item for item in generated if item is not None]
            if len(items) == _ITEMS:
                yield items


def _compare(
    trial: _Trial, items: Sequence[dict[str, Any]], alone: list[dict[str, Any]], largest: int
) -> tuple[BatchingVerdict, str] | None:
    """Compare the answers to items alone and in batches. None if these items are inconclusive."""
    for name, array in alone[0].items():
        if array.ndim == 0 or len(array) != 1:
            return BatchingVerdict.DIFFERS, f"{quote(name)} does not have one result for each item."
    mismatch = _first_mismatch(trial, trial.run([items[0]]), alone[0])
    if mismatch:
        return BatchingVerdict.UNKNOWN, f"{quote(mismatch)} changes from run to run."
    for indices in _PAIRS:
        difference = _find_difference(trial, items, alone, indices)
        if difference:
            return BatchingVerdict.DIFFERS, difference
    if not _first_mismatch(trial, alone[0], alone[1]):
        return None
    difference = _try_larger_batches(trial, items, alone, largest)
    return (BatchingVerdict.DIFFERS, difference) if difference else (BatchingVerdict.SHOWN, "")


def _try_larger_batches(
    trial: _Trial, items: Sequence[dict[str, Any]], alone: list[dict[str, Any]], largest: int
) -> str:
    """Try larger batches until the deadline. The largest batch is last, because it takes longest."""
    whole = tuple((3 * index) % _ITEMS for index in range(largest))
    seconds_each = 0.0
    for indices in (*_LARGER_BATCHES, whole):
        if not 2 <= len(indices) <= largest:
            continue
        started = time.process_time()
        if started + seconds_each * len(indices) > trial.deadline:
            return ""
        if len(alone) < len(items):
            alone += [trial.run([item]) for item in items[len(alone) :]]
        difference = _find_difference(trial, items, alone, indices)
        if difference:
            return difference
        seconds_each = (time.process_time() - started) / len(indices)
    return ""


def _find_difference(
    trial: _Trial,
    items: Sequence[dict[str, Any]],
    alone: Sequence[dict[str, Any]],
    indices: Sequence[int],
) -> str:
    """Describe the first difference; empty if all results match."""
    count = len(indices)
    try:
        batched = trial.run([items[index] for index in indices])
    except _CannotRun as error:
        return f"A batch of {count} items failed: {error}"
    for name, array in batched.items():
        if array.ndim == 0 or len(array) != count:
            return f"{quote(name)} does not have one result for each of {count} items."
    for row, index in enumerate(indices):
        own = {name: array[row : row + 1] for name, array in batched.items()}
        mismatch = _first_mismatch(trial, own, alone[index])
        if mismatch:
            return (
                f"{quote(mismatch)} of the same item differs between a single request and "
                f"position {row + 1} in a batch of {count}."
            )
    return ""


def _first_mismatch(trial: _Trial, left: dict[str, Any], right: dict[str, Any]) -> str:
    return next(
        (name for name in left if not _is_close(left[name], right[name], trial.kinds[name])), ""
    )


def _is_close(left: Any, right: Any, kind: str) -> bool:
    if left.shape != right.shape:
        return False
    if kind == BFLOAT16:
        left, right = _widened(left), _widened(right)
        tolerance = _TOLERANCE[BFLOAT16]
    else:
        tolerance = _TOLERANCE.get(str(left.dtype), 0.0)
    if not tolerance:
        return bool(np.array_equal(left, right))
    finite = right[np.isfinite(right)]
    most = float(np.max(np.abs(finite), initial=0.0))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * most, equal_nan=True))


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
