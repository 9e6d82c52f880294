"""Read the text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats.

Only samples, without their families. A sweep reads thousands of pages every few seconds, for which
prometheus_client takes ten times as long.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

# No run of spaces can be read in two ways: a pod could hold a worker for hours with one line of them.
_SAMPLE: Final = re.compile(
    r"([a-zA-Z_:][\w:]*+)(?:[ \t]*+\{(.*)\})?[ \t]++([^ \t]++)(?:[ \t]++-?[\d.]++)?[ \t]*+",
    re.ASCII,
)
_NAME: Final = re.compile(r"[a-zA-Z_:][\w:]*+", re.ASCII)
_LABEL: Final = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)', re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)")
_CHARACTERS: Final = {"n": "\n"}
# OpenMetrics names the trace of an observation after its value.
_EXEMPLAR: Final = " # {"
# What a row can hold: one pod that claims more would keep all others from being stored.
MOST: Final = 2**63 - 1
Sample = tuple[str, str, float]


def samples(text: str) -> Iterator[Sample]:
    """Yield name, labels as they are written, and value. The value is NaN, which means unknown, where a line that
    begins with a name has none that can be read; other lines are left out. One bad line takes no other with it.
    """
    for line in text.split("\n"):
        if not line or line[0] == "#" or line.isspace():
            continue
        written = (
            line.rstrip("\r").partition(_EXEMPLAR)[0] if _EXEMPLAR in line else line.rstrip("\r")
        )
        if match := _SAMPLE.fullmatch(written):
            name, labels, value = match.groups()
            yield name, labels or "", _number(value)
        elif match := _NAME.match(line):
            yield match[0], "", math.nan


def is_known(value: float) -> bool:
    """Whether it is a number that a gauge or counter of a server can have: finite, not negative, and storable."""
    return 0 <= value <= MOST


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_labels(text: str) -> Mapping[str, str]:
    """Raises ValueError."""
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise ValueError(f"not labels: {text[:100]!r}")
        labels[match[1]] = _unescape(match[2])
        at = match.end()
    return labels


def _unescape(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda found: _CHARACTERS.get(found[1], found[1]), value)
