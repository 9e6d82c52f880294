"""Reads the splits of a LightGBM text file, and finds those that a server of 32-bit rows cannot follow.

A split is described by bits (LightGBM, include/LightGBM/tree.h): 1 for categories, 2 for missing values to the
left, and two more bits for what counts as missing: nothing (0), zero (1) or NaN (2).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from deployments.registry.domain.not_servable import NotServable, printable, quote

_CATEGORICAL: Final = 1
_MISSING_SHIFT, _MISSING_MASK = 2, 3
_ZERO: Final = 1
_UNKNOWN: Final = 3
_LARGEST_TYPE: Final = 15
# Of the distance between two thresholds: more lets rounding decide rows.
_MOST_ROUNDING: Final = 0.001
_BESIDE_ZERO: Final = 1e-30
# LightGBM's default.
_BINS: Final = 255
_SHOWN: Final = 5
_PANDAS: Final = "pandas_categorical:"
_ZERO_FIX: Final = (
    "Train it again without zero_as_missing, with missing values as NaN in the data; or convert zeros to NaN in the "
    "training data and in requests."
)


def check(path: str) -> None:
    """Check the splits of a file. Raises NotServable for those that Treelite, and so Triton's FIL backend,
    answers otherwise.
    """
    counts: dict[int, int] = defaultdict(int)
    for line in _lines(path, "decision_type="):
        for kind in _integers(line):
            if not 0 <= kind <= _LARGEST_TYPE:
                raise NotServable(
                    f"A split has decision_type {kind}, which LightGBM does not write. Save the model again."
                )
            counts[kind >> _MISSING_SHIFT & _MISSING_MASK] += 1
    if counts[_UNKNOWN]:
        raise NotServable(
            f"{counts[_UNKNOWN]:,} splits have an unknown kind of missing values (decision_type 12 to 15). Save the "
            "model again with a release of LightGBM 4."
        )
    if counts[_ZERO]:
        raise NotServable(
            f"{counts[_ZERO]:,} of {sum(counts.values()):,} splits take zero for a missing value (zero_as_missing). "
            f"Triton's backend compares zeros with the threshold, so rows with zeros would get other scores. {_ZERO_FIX}"
        )


def describe_rounding(path: str) -> str:
    """Name the features whose thresholds are so close that 32-bit rows do not keep to one side of them, as a
    sentence. Empty if there are none.
    """
    names = next(iter(_lines(path, "feature_names=")), "").split()
    thresholds = _thresholds(path)
    widths = _read_widths(path)
    rounded = [
        feature
        for feature, values in sorted(thresholds.items())
        if _is_rounded(values, widths.get(feature, 0.0))
    ]
    if not rounded:
        return ""
    shown = ", ".join(
        quote(names[feature]) if feature < len(names) else f"number {feature}"
        for feature in rounded[:_SHOWN]
    )
    more = f" and {len(rounded) - _SHOWN:,} more" if len(rounded) > _SHOWN else ""
    return (
        f"The thresholds of {shown}{more} are too close together for 32-bit rows: values beside them are rounded across, "
        "and such rows get other scores than 64-bit rows in LightGBM. Subtract an offset from the feature (such as the "
        "first date of a time), train again, and send requests so."
    )


def describe_categories(path: str) -> str:
    """Say that a model of a pandas frame takes codes, not values; empty for others."""
    line = next(iter(_lines(path, _PANDAS)), "null")
    try:
        lists = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(lists, list) or not lists:
        return ""
    values = lists[0] if isinstance(lists[0], list) else []
    shown = ", ".join(
        f"{code} = {printable(str(value))[:30]}" for code, value in enumerate(values[:3])
    )
    return (
        f"Categories of the pandas frame are sent as their codes (df[column].cat.codes), for the first such column: {shown}"
        f"{', …' if len(values) > 3 else ''}"
    )


def _thresholds(path: str) -> dict[int, list[float]]:
    """Return the numeric thresholds by feature."""
    found: dict[int, list[float]] = defaultdict(list)
    triples = zip(
        _lines(path, "split_feature="),
        _lines(path, "threshold="),
        _lines(path, "decision_type="),
        strict=False,
    )
    for features, thresholds, kinds in triples:
        for feature, threshold, kind in zip(
            _integers(features), thresholds.split(), _integers(kinds), strict=False
        ):
            if not kind & _CATEGORICAL:
                found[feature].append(float(threshold))
    return found


def _is_rounded(values: Sequence[float], width: float) -> bool:
    """Whether neighbouring 32-bit numbers are as far apart as some two thresholds, or not small beside their usual
    distance. `width` is the distance for a feature with a single threshold.
    """
    ordered = np.unique(np.asarray(values, np.float64))
    ordered = ordered[np.isfinite(ordered)]
    if not len(ordered):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        spacing = np.spacing(np.abs(ordered).astype(np.float32)).astype(np.float64)
    distance = np.diff(ordered)
    # LightGBM writes 1e-35 for a threshold beside zero, where 32-bit numbers are dense.
    is_merged = (spacing[1:] >= distance / 4) & (np.abs(ordered[1:]) > _BESIDE_ZERO)
    usual = float(np.median(distance)) if len(distance) else width
    return bool(is_merged.any()) or (usual > 0 and float(spacing.max()) > _MOST_ROUNDING * usual)


def _read_widths(path: str) -> dict[int, float]:
    """Return the ranges of the training data by feature, divided by the number of bins."""
    widths = {}
    for number, text in enumerate(next(iter(_lines(path, "feature_infos=")), "").split()):
        first, _, last = text.strip("[]").partition(":")
        if text.startswith("[") and last:
            widths[number] = (float(last) - float(first)) / _BINS
    return widths


def _lines(path: str, start: str) -> Iterator[str]:
    with Path(path).open(errors="replace") as file:
        for line in file:
            if line.startswith(start):
                yield line[len(start) :].strip()


def _integers(line: str) -> list[int]:
    """Parse the integers of a line. Raises NotServable."""
    try:
        return [int(value) for value in line.split()]
    except ValueError:
        raise NotServable("The splits of the file are damaged. Save the model again.") from None
