"""The query that a person types to find versions.

int8 detector            words, each of which must be there
v3, detector:3, vision/detector:3        exactly that version
map>0.5, latency_ms<=20  conditions on a metric
precision=int8           a label
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

MAX_TERMS: Final = 10
_MAX_NUMBER: Final = 2**31 - 1
_NUMBERED: Final = re.compile(r"v(\d{1,10})", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"(?:([a-z0-9-]+)/)?([a-z][a-z0-9-]*):v?(\d{1,10})", re.IGNORECASE)
_CONDITION: Final = re.compile(r"([A-Za-z][\w.@/%-]{0,79}?)(>=|<=|>|<|=)(.+)", re.ASCII)
_SPACES: Final = re.compile(r"\s*(>=|<=|>|<|=)\s*")
# Of a sentence only what says something is searched.
_FILLERS: Final = frozenset(
    [
        *("a", "an", "and", "at", "by", "for", "from", "in", "is", "of", "on", "or", "that"),
        *("the", "to", "which", "with"),
    ]
)


@dataclass(frozen=True, slots=True)
class MetricCondition:
    """A condition on a metric. `operator` is >, >=, <, <= or =; the name is in lower case."""

    metric: str
    operator: str
    value: float


@dataclass(frozen=True, slots=True)
class VersionReference:
    """A version by its number; an empty name is any."""

    number: int
    model: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    words: tuple[str, ...] = ()
    references: tuple[VersionReference, ...] = ()
    conditions: tuple[MetricCondition, ...] = ()
    # Key and value.
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def is_about_versions(self) -> bool:
        """Whether it says more than a model can answer."""
        return bool(self.references or self.conditions or self.labels)


def parse(text: str) -> SearchQuery:
    """Parse at most MAX_TERMS terms. A term that is no reference, condition or label is a word."""
    words, references, conditions, labels = [], [], [], []
    for term in _SPACES.sub(r"\1", text.replace("\x00", " ")).split()[:MAX_TERMS]:
        if reference := _reference(term):
            references.append(reference)
        elif condition := parse_condition(term):
            conditions.append(condition)
        elif (label := _CONDITION.fullmatch(term)) and label[2] == "=":
            labels.append((label[1], label[3]))
        else:
            words.append(term.lower())
    kept = [word for word in words if word not in _FILLERS] or words
    return SearchQuery(tuple(kept), tuple(references), tuple(conditions), tuple(labels))


def parse_condition(text: str) -> MetricCondition | None:
    """Parse a condition, for example map>0.5. None if it is not a condition on a number."""
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        return None
    try:
        value = float(match[3])
    except ValueError:
        return None
    return MetricCondition(match[1].lower(), match[2], value) if math.isfinite(value) else None


def _reference(term: str) -> VersionReference | None:
    if match := _NUMBERED.fullmatch(term):
        number, team, model = int(match[1]), "", ""
    elif match := _REFERENCE.fullmatch(term):
        number, team, model = int(match[3]), (match[1] or "").lower(), match[2].lower()
    else:
        return None
    return VersionReference(number, model, team) if number <= _MAX_NUMBER else None
