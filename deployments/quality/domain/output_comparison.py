"""Compare two answers of a model, output by output, in the JSON form of the v2 inference protocol.

A floating-point element agrees with the expected one when |got - expected| <= absolute + relative *
|expected|; whole numbers, booleans and texts agree only when they are equal. NaN agrees with NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

FLOATS: Final = frozenset({"FP16", "BF16", "FP32", "FP64"})


class BadOutputs(Exception):
    """The answer is no list of outputs; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    absolute: float
    relative: float

    def allows(self, expected: float, got: float) -> bool:
        if math.isnan(expected) or math.isnan(got):
            return math.isnan(expected) and math.isnan(got)
        if math.isinf(expected) or math.isinf(got):
            return expected == got
        return abs(got - expected) <= self.absolute + self.relative * abs(expected)


# Kernels and GPUs round differently; half precision keeps about three digits, single about seven.
DEFAULT_TOLERANCES: Final[Mapping[str, Tolerance]] = {
    "FP16": Tolerance(absolute=1e-3, relative=1e-2),
    "BF16": Tolerance(absolute=1e-2, relative=2e-2),
    "FP32": Tolerance(absolute=1e-4, relative=1e-3),
    "FP64": Tolerance(absolute=1e-8, relative=1e-6),
}
# No whole number of the protocol has more than 64 bits.
_TOO_LARGE: Final = 2**64
EXACT: Final = Tolerance(absolute=0.0, relative=0.0)


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    datatype: str
    shape: tuple[int, ...]
    data: tuple[Any, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "datatype": self.datatype,
            "shape": list(self.shape),
            "data": list(self.data),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of one output of one request. `largest_*` are None where nothing can be subtracted.

    `mismatch` describes the first element beyond tolerance, or what else is wrong; empty if nothing
    is.
    """

    output: str
    elements: int
    beyond: int
    largest_absolute: float | None
    largest_relative: float | None
    mismatch: str

    @property
    def is_within(self) -> bool:
        return not self.mismatch

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def differences_of(stored: Sequence[Mapping[str, Any]]) -> tuple[Difference, ...]:
    """Read differences from their stored form."""
    return tuple(Difference(**row) for row in stored)


def read(answer: object) -> tuple[Output, ...]:
    """Return the outputs of an inference answer. Raises BadOutputs."""
    rows = answer.get("outputs") if isinstance(answer, Mapping) else None
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise BadOutputs("no list of outputs")
    made = tuple(read_one(row) for row in rows)
    names = [output.name for output in made]
    if len(set(names)) != len(names):
        raise BadOutputs("an output appears twice")
    return made


def read_one(row: object) -> Output:
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str):
        raise BadOutputs("an output has no name")
    name = row["name"]
    datatype: Any = row.get("datatype")
    shape: Any = row.get("shape")
    data: Any = row.get("data")
    is_list = isinstance(shape, list) and isinstance(data, list)
    if not isinstance(datatype, str) or not is_list or not all(map(_is_size, shape)):
        raise BadOutputs(f"{name} needs a datatype, a shape and data as a list")
    flat = tuple(_flatten(data))
    if len(flat) != math.prod(shape):
        raise BadOutputs(f"{name} has {len(flat)} elements, which does not match shape {shape}")
    if not all(_is_element(datatype, value) for value in flat):
        raise BadOutputs(f"{name} has a value that is not {datatype}")
    values = tuple(map(float, flat)) if datatype in FLOATS else flat
    return Output(name, datatype, tuple(shape), values)


def compare(
    expected: Sequence[Output],
    got: Sequence[Output],
    tolerances: Mapping[str, Tolerance],
) -> tuple[Difference, ...]:
    """Compare the outputs, one result per expected output, in their order. Outputs that only `got` has do not
    count.
    """
    by_name = {output.name: output for output in got}
    return tuple(
        _compare_one(output, by_name.get(output.name), tolerance_of(output, tolerances))
        for output in expected
    )


def tolerance_of(output: Output, tolerances: Mapping[str, Tolerance]) -> Tolerance:
    if output.datatype not in FLOATS:
        return EXACT
    return tolerances.get(output.name, DEFAULT_TOLERANCES[output.datatype])


def _compare_one(expected: Output, got: Output | None, allowed: Tolerance) -> Difference:
    problem = _misfit(expected, got)
    if got is None or problem:
        count = len(expected.data)
        return Difference(expected.name, count, count, None, None, problem)
    if expected.datatype in FLOATS:
        return _compare_floats(expected, got, allowed)
    wrong = [i for i, pair in enumerate(zip(expected.data, got.data, strict=True)) if _differ(pair)]
    mismatch = _describe_element(expected, got, wrong[0]) if wrong else ""
    is_number = expected.datatype not in ("BYTES", "BOOL")
    pairs = zip(expected.data, got.data, strict=True)
    largest = max((abs(b - a) for a, b in pairs), default=0) if is_number else None
    return Difference(expected.name, len(expected.data), len(wrong), largest, None, mismatch)


def _compare_floats(expected: Output, got: Output, allowed: Tolerance) -> Difference:
    pairs = list(zip(expected.data, got.data, strict=True))
    wrong = [i for i, (a, b) in enumerate(pairs) if not allowed.allows(a, b)]
    finite = [(a, b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
    absolute = max((abs(b - a) for a, b in finite), default=0.0)
    relative = max((abs(b - a) / abs(a) for a, b in finite if a), default=0.0)
    mismatch = _describe_element(expected, got, wrong[0]) if wrong else ""
    if wrong and math.isfinite(_gap(pairs[wrong[0]])):
        mismatch += f", allowed {_format_allowed(pairs[wrong[0]][0], allowed)}"
    return Difference(
        output=expected.name,
        elements=len(pairs),
        beyond=len(wrong),
        largest_absolute=_finite(absolute),
        largest_relative=_finite(relative),
        mismatch=mismatch,
    )


def _misfit(expected: Output, got: Output | None) -> str:
    if got is None:
        return "missing from the response"
    is_both_float = expected.datatype in FLOATS and got.datatype in FLOATS
    if expected.datatype != got.datatype and not is_both_float:
        return f"it is {got.datatype}, expected {expected.datatype}"
    if expected.shape != got.shape:
        return f"its shape is {list(got.shape)}, expected {list(expected.shape)}"
    return ""


def _describe_element(expected: Output, got: Output, index: int) -> str:
    place = f"element {index + 1} of {len(expected.data)}"
    expected_value, actual = expected.data[index], got.data[index]
    text = f"{place} is {_short(actual)}, expected {_short(expected_value)}"
    is_number = expected.datatype not in ("BYTES", "BOOL")
    if is_number and math.isfinite(_gap((expected_value, actual))):
        text += f": off by {abs(actual - expected_value):.4g}"
    return text


def _format_allowed(expected: float, allowed: Tolerance) -> str:
    return f"{allowed.absolute + allowed.relative * abs(expected):.4g}"


def _gap(pair: tuple[Any, Any]) -> float:
    return float(pair[1] - pair[0])


def _differ(pair: tuple[Any, Any]) -> bool:
    return bool(pair[0] != pair[1])


def _short(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:39]}…")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _finite(value: float) -> float | None:
    """Replace infinities and NaN by None: JSON has none."""
    return value if math.isfinite(value) else None


def _flatten(data: Sequence[Any]) -> Iterator[Any]:
    """Yield the items of nested lists without recursion: an answer may be nested to any depth."""
    stack = [iter(data)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


def _is_element(datatype: str, value: object) -> bool:
    if datatype == "BYTES":
        return isinstance(value, str)
    if datatype == "BOOL":
        return isinstance(value, bool | int)
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return abs(value) < _TOO_LARGE
    return datatype in FLOATS and isinstance(value, float)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
