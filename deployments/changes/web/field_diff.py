"""The fields of a request line by line: compared with what serves now, else with the defaults."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from deployments.changes.selectors import shown_evidence
from deployments.models import ChangeRequest
from deployments.registry.domain.metadata import metric_direction
from deployments.spec.domain import field_values
from deployments.spec.domain.engines import ENGINES
from deployments.spec.domain.serving_spec import ServingSpec

Line: TypeAlias = Mapping[str, str]
# What an approver looks for first, whether or not somebody chose it.
_ALWAYS: Final = ("gpus", "min_replicas", "max_replicas", "cpu", "memory", "network.access")


@dataclass(frozen=True, slots=True)
class FieldLine:
    label: str
    before: str
    after: str
    # "good" or "bad" where it is known which direction of a metric is better.
    tone: str = ""
    is_default: bool = False

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class FieldDiff:
    lines: Sequence[FieldLine]
    # Something serves now.
    has_before: bool

    @property
    def shown(self) -> list[FieldLine]:
        return [line for line in self.lines if self._is_news(line)]

    @property
    def folded(self) -> list[FieldLine]:
        """The lines that stay as they are, and those that nobody chose."""
        return [line for line in self.lines if line.after and not self._is_news(line)]

    def _is_news(self, line: FieldLine) -> bool:
        return line.is_changed if self.has_before else not line.is_default


def build_diff(change: ChangeRequest) -> FieldDiff:
    return from_lines(shown_evidence.diff_of(change))


def from_lines(diff: Iterable[Line]) -> FieldDiff:
    """Build the comparison. Fields empty on both sides are left out."""
    lines = [line for line in diff if line["before"] or line["after"]]
    defaults = _defaults_of(lines)
    return FieldDiff(
        lines=[_describe(line, defaults) for line in lines],
        has_before=any(line["before"] for line in lines),
    )


def _describe(line: Line, defaults: Mapping[str, str]) -> FieldLine:
    name, before, after = line["field"], line["before"], line["after"]
    return FieldLine(
        field_values.describe_field(name),
        field_values.describe_value(name, before),
        field_values.describe_value(name, after),
        metric_direction.tone(name, before, after),
        is_default=name not in _ALWAYS and defaults.get(name) == after,
    )


def _defaults_of(lines: Sequence[Line]) -> Mapping[str, str]:
    """Return the defaults of the requested engine. Empty for a pipeline, which has none."""
    engine = next((line["after"] for line in lines if line["field"] == "engine"), "")
    return _defaults(engine) if engine in ENGINES else {}


@functools.cache
def _defaults(engine: str) -> Mapping[str, str]:
    spec = ServingSpec.from_json({"engine": engine, "instance_type": "any"}).to_json()
    del spec["engine"], spec["instance_type"]
    return field_values.flatten(spec)
