"""Read the text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats.

Only samples, without their families. A sweep reads thousands of pages every few seconds, for which
prometheus_client takes ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

# No run of spaces can be read in two ways: a pod could hold a worker for hours with one line of them.
_SAMPLE: Final = re.compile(
    r"([a-zA-Z_:][\w:]*+)(?:[ \t]*+\{(.*)\})?[ \t]++([^ \t]++)(?:[ \t]++-?\d++)?[ \t]*+", re.ASCII
)
_LABEL: Final = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)', re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)")
_CHARACTERS: Final = {"n": "\n"}
Sample = tuple[str, str, float]


def samples(text: str) -> Iterator[Sample]:
    """Name, labels as they are written, and value. Raises ValueError for a line that is none."""
    for line in text.split("\n"):
        if not line or line[0] == "#" or line.isspace():
            continue
        match = _SAMPLE.fullmatch(line.rstrip("\r"))
        if match is None:
            raise ValueError(f"not a sample: {line[:100]!r}")
        name, labels, value = match.groups()
        yield name, labels or "", float(value)


def labels_of(text: str) -> Mapping[str, str]:
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
