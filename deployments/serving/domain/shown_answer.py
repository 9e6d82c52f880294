"""An answer of a model for people: the likeliest classes by name, else the values of each output."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from deployments.serving.domain.request_inputs import flatten, format_shape

TOP_CLASSES: Final = 5
MAX_OUTPUTS: Final = 20
MAX_ITEMS: Final = 5
MAX_VALUES: Final = 12
MAX_TEXT: Final = 2_000
_DIGITS: Final = 4
_FLOATS: Final = frozenset({"FP16", "BF16", "FP32", "FP64"})
# Scores that add up to 1 are probabilities; those of FP16 do so roughly.
_ROUNDING: Final = 0.01


@dataclass(frozen=True, slots=True)
class ScoredClass:
    """A class with its score. `percent` is None where the scores are no probabilities."""

    name: str
    score: str
    percent: float | None


@dataclass(frozen=True, slots=True)
class AnsweredItem:
    """The part of an output for one item of the batch: classes from the highest score on, else values."""

    classes: tuple[ScoredClass, ...] = ()
    hidden_classes: int = 0
    values: str = ""
    hidden_values: int = 0


@dataclass(frozen=True, slots=True)
class AnsweredOutput:
    name: str
    datatype: str
    shape_text: str
    items: tuple[AnsweredItem, ...]
    hidden_items: int

    @property
    def has_several(self) -> bool:
        return len(self.items) + self.hidden_items > 1


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The outputs of an answer, or the error that the server gave instead."""

    outputs: tuple[AnsweredOutput, ...] = ()
    hidden_outputs: int = 0
    error: str = ""


def describe_answer(text: str, class_names: Sequence[str] = ()) -> ShownAnswer | None:
    """Describe an answer of the Open Inference Protocol. None for any other text."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, Mapping):
        return None
    if isinstance(body.get("error"), str) and body["error"]:
        return ShownAnswer(error=body["error"][:MAX_TEXT])
    rows = body.get("outputs")
    if not isinstance(rows, list) or not rows:
        return None
    outputs = [_describe_output(row, class_names) for row in rows[:MAX_OUTPUTS]]
    known = tuple(output for output in outputs if output is not None)
    if len(known) < len(outputs):
        return None
    return ShownAnswer(known, hidden_outputs=len(rows) - len(known))


def _describe_output(row: object, class_names: Sequence[str]) -> AnsweredOutput | None:
    if not isinstance(row, Mapping):
        return None
    name, datatype, shape = row.get("name"), row.get("datatype"), row.get("shape")
    data = row.get("data")
    if not (isinstance(name, str) and isinstance(datatype, str) and isinstance(data, list)):
        return None
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        return None
    flat = flatten(data)
    if len(flat) != math.prod(shape) or any(isinstance(value, dict) for value in flat):
        return None
    has_scores = datatype in _FLOATS and _is_scores(shape, class_names)
    names = class_names if has_scores else ()
    # A list of scores for one item has no batch dimension.
    is_one = len(shape) < 2 and not (has_scores and len(names) != len(flat))
    count = 1 if is_one else shape[0]
    length = len(flat) // count if count else 0
    items = tuple(
        _describe_item(flat[start * length : (start + 1) * length], names)
        for start in range(min(count, MAX_ITEMS))
    )
    return AnsweredOutput(name, datatype, format_shape(shape), items, count - len(items))


def _is_scores(shape: Sequence[int], class_names: Sequence[str]) -> bool:
    """Return whether each item has a score for each class, or one for the second of two classes."""
    if not class_names or not shape:
        return False
    per_item = math.prod(shape[1:])
    if per_item == len(class_names) or shape == [len(class_names)]:
        return True
    return per_item == 1 and len(class_names) == 2


def _describe_item(values: list[Any], class_names: Sequence[str]) -> AnsweredItem:
    if class_names and all(_is_finite(value) for value in values):
        return _describe_classes(values, class_names)
    shown = values[:MAX_VALUES]
    if len(values) == 1 and isinstance(values[0], str):
        text = values[0]
        return AnsweredItem(values=text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…")
    return AnsweredItem(
        values=", ".join(_format_value(value) for value in shown),
        hidden_values=len(values) - len(shown),
    )


def _describe_classes(scores: Sequence[float], class_names: Sequence[str]) -> AnsweredItem:
    names = class_names
    if len(scores) < len(class_names):
        # A single score is that of the second class. As a probability it tells the first one's too.
        is_probability = 0 <= scores[0] <= 1
        scores = (1 - scores[0], scores[0]) if is_probability else scores
        names = class_names[-len(scores) :]
    are_probabilities = (
        all(0 <= score <= 1 for score in scores) and abs(sum(scores) - 1) <= _ROUNDING
    )
    ranked = sorted(zip(names, scores, strict=True), key=lambda pair: -pair[1])[:TOP_CLASSES]
    classes = tuple(
        ScoredClass(name, _format_value(score), 100 * score if are_probabilities else None)
        for name, score in ranked
    )
    return AnsweredItem(classes=classes, hidden_classes=len(scores) - len(classes))


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _format_value(value: object) -> str:
    """Format a value with four significant digits. Whole numbers keep all, without separators."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return f"{Decimal(f'{value:.{_DIGITS}g}'):f}"
    if isinstance(value, str):
        return json.dumps(value[:MAX_TEXT], ensure_ascii=False)
    return str(value)
