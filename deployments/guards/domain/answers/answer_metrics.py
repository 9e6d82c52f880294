"""The metrics that a service may post about its model's answers, and the sums of one batch.

    labels        the label of each answer
    lengths       how long each answer is, in what unit the service likes
    structured    whether each answer had the requested form
    embeddings    the vector of each answer
    input_labels, input_lengths    a category or a size of each request

Both sides of a rollout get the same requests by chance, so inputs are no guard; their drift is judged
each day after it (`deployments.health`).

Only sums are kept: counts per label, per bucket of length, per bucket of distance. A vector becomes
its cosine distance to the centre of the stable revision's reference set, and a part of the sum of
unit vectors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from deployments.guards.domain.answers import two_sample_tests
from portal.core.definitions import Rejected

MOST_VALUES: Final = 1000
MOST_LABELS: Final = 200
LONGEST_LABEL: Final = 100
MOST_DIMENSIONS: Final = 4096
MOST_NUMBERS: Final = 131_072
_LONGEST: Final = 10**9
_DISTANCE_STEPS: Final = 200
GOOD: Final = "good"
BAD: Final = "bad"


class AnswerKind(StrEnum):
    LABELS = "labels"
    LENGTHS = "lengths"
    STRUCTURED = "structured"
    EMBEDDINGS = "embeddings"
    INPUT_LABELS = "input_labels"
    INPUT_LENGTHS = "input_lengths"


@dataclass(frozen=True, slots=True)
class Summary:
    """The sums of one batch. `total` is the sum of unit vectors, empty but for embeddings."""

    n: int
    counts: Mapping[str, int]
    total: tuple[float, ...] = ()


QualityMetric = Literal[
    "label_drift", "output_length", "structured_failures", "embedding_drift", "disagreement"
]


@dataclass(frozen=True, slots=True)
class QualityKind:
    """A kind of model-quality guard. `figure` is what is limited; `default` None means off unless the plan sets a
    limit.
    """

    label: str
    figure: str
    default: float | None


QUALITY: Final[Mapping[QualityMetric, QualityKind]] = {
    "label_drift": QualityKind("Label distribution", "Jensen-Shannon distance", 0.15),
    "output_length": QualityKind("Output length", "largest gap between distributions", 0.2),
    "structured_failures": QualityKind("Structured output", "increase in failure rate", 0.02),
    "embedding_drift": QualityKind("Embedding drift", "cosine distance of means", 0.05),
    "disagreement": QualityKind("Disagreement with stable", "fraction of golden requests", None),
}


def sum_up(kind: AnswerKind, values: object) -> Summary:
    """Sum up one batch of posted values. Raises Rejected, naming what is wrong. Embeddings are read by
    `unit_vectors`.
    """
    listed = _listed(values)
    if kind in (AnswerKind.LABELS, AnswerKind.INPUT_LABELS):
        return _labels(listed)
    if kind in (AnswerKind.LENGTHS, AnswerKind.INPUT_LENGTHS):
        return _lengths(listed)
    if not all(isinstance(value, bool) for value in listed):
        raise _bad("Each value is true when the answer had the right form, else false.")
    good = sum(listed)
    return Summary(len(listed), {GOOD: good, BAD: len(listed) - good})


def unit_vectors(values: object) -> list[list[float]]:
    """Scale vectors of one size to length 1. Raises Rejected."""
    rows = _listed(values)
    sizes = {len(row) if isinstance(row, list) else 0 for row in rows}
    size = next(iter(sizes))
    if len(sizes) != 1 or not 2 <= size <= MOST_DIMENSIONS or size * len(rows) > MOST_NUMBERS:
        raise _bad(
            f"Embeddings are lists of 2 to {MOST_DIMENSIONS} numbers, all of one size, at most "
            f"{MOST_NUMBERS:,} numbers in one batch."
        )
    return [_unit(row) for row in rows]


def sum_vectors(vectors: Sequence[Sequence[float]], size: int) -> tuple[float, ...]:
    if not vectors:
        return (0.0,) * size
    return tuple(math.fsum(column) for column in zip(*vectors, strict=True))


def distances(vectors: Sequence[Sequence[float]], centre: Sequence[float]) -> Mapping[str, int]:
    """Count the cosine distances to the centre per bucket, in steps of 0.005."""
    values = (two_sample_tests.cosine_distance(vector, centre) for vector in vectors)
    return Counter(f"{round(value * _DISTANCE_STEPS) / _DISTANCE_STEPS:.3f}" for value in values)


def _labels(values: Sequence[Any]) -> Summary:
    if not all(_is_label(value) for value in values):
        raise _bad(f"A label is a text of 1 to {LONGEST_LABEL} printable characters.")
    counts = Counter(values)
    if len(counts) > MOST_LABELS:
        raise _bad(f"{len(counts)} different labels in one batch; at most {MOST_LABELS}.")
    return Summary(len(values), counts)


def _lengths(values: Sequence[Any]) -> Summary:
    if not all(type(value) is int and 0 <= value <= _LONGEST for value in values):
        raise _bad("A length is a whole number, 0 or more.")
    return Summary(len(values), Counter(str(_bucket(value)) for value in values))


def _bucket(length: int) -> int:
    """Round to two leading digits: 0 to 99 stay as they are, 1,234 becomes 1,200."""
    step: int = 10 ** max(0, len(str(length)) - 2)
    return length // step * step


def _is_label(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= LONGEST_LABEL and value.isprintable()


def _unit(row: Sequence[Any]) -> list[float]:
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in row):
        raise _bad("An embedding contains something that is not a number.")
    try:
        length = math.hypot(*row)
    except OverflowError as error:
        raise _bad("An embedding contains a number that is too large.") from error
    if not length or not math.isfinite(length):
        raise _bad("An embedding has no direction: it is all zeros, or not finite.")
    return [x / length for x in row]


def _listed(values: object) -> list[Any]:
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_VALUES:
        raise _bad(f"Post a list of 1 to {MOST_VALUES:,} values at a time.")
    return values


def _bad(message: str) -> Rejected:
    return Rejected(message, {"values": message})
