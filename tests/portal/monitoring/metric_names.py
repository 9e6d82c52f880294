"""Names of metrics: in PromQL, and in expositions that are kept as data."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_FOLDER = Path(__file__).parent / "expositions"
# Of a Triton with a GPU or with options that the one that was read does not have.
_OF_OPTIONS = frozenset({"nv_inference_request_summary_us"})
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|without|on|ignoring)\s*\([^)]*\)")
_RANGE = re.compile(r"\[[^\]]*\]|\boffset\s+\w+")
_NUMBER = re.compile(r"(?<![\w:])\d+(?:\.\d+)?(?:e\d+)?\b")
_WORD = re.compile(r"[A-Za-z_:][\w:]*(?!\w*\s*\()")
_FUNCTION = re.compile(r"[A-Za-z_]\w*\s*\(")
_OPERATORS = frozenset(
    {"and", "or", "unless", "sum", "min", "max", "avg", "count", "bool", "group_left"}
)


def metrics_in(query: str) -> set[str]:
    text = query
    for pattern in (_STRING, _LABELS, _RANGE, _NUMBER, _FUNCTION):
        text = pattern.sub(" " if pattern is not _STRING else '""', text)
    return set(_WORD.findall(text)) - _OPERATORS


def published() -> set[str]:
    """As they are written in the text, not as OpenMetrics would call them."""
    names = set(_OF_OPTIONS)
    for path in sorted(_FOLDER.glob("*.txt")):
        list(text_string_to_metric_families(path.read_text()))
        names |= set(re.findall(r"^([A-Za-z_:][\w:]*)[{ ]", path.read_text(), re.MULTILINE))
    return names
