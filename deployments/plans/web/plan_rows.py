"""The rows of the plan form: steps, guards, limits on answers, and PromQL queries.

Fields follow from the definitions in the domain. A row without values is left out of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BoundField, formset_factory

from deployments.guards.domain import catalogue, guard_set
from deployments.guards.domain.answers.answer_metrics import QUALITY
from deployments.guards.domain.families.counters import CounterKind
from deployments.guards.domain.families.percentiles import PercentileKind
from deployments.guards.domain.families.protocol import Protects
from deployments.guards.domain.promql import QueryGuard
from deployments.plans.domain.rollout_plan import PlanKind, RolloutPlan
from deployments.plans.domain.steps import Step
from portal.core.definitions import FieldDefinition, fields_of

MOST_ROWS: Final = 6
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class StepColumn:
    """A column of the table of steps. `source` is the field of the step; people fill in seconds as minutes."""

    name: str
    source: str
    unit: str
    least: int

    @property
    def is_in_minutes(self) -> bool:
        return self.name != self.source


_STEP_COLUMNS: Final = (
    StepColumn("weight", "weight", "%", 1),
    StepColumn("soak_minutes", "soak_seconds", "min", 0),
    StepColumn("min_requests", "min_requests", "≥", 0),
    StepColumn("deadline_minutes", "deadline_seconds", "min", 1),
)
# The titles of what guards protect, in the order of the form.
_GROUPS: Final[Mapping[Protects, str]] = {
    Protects.ERRORS: "Errors",
    Protects.SPEED: "Speed",
    Protects.MONEY: "Money and memory",
}


def minutes_of(seconds: int | None) -> float | None:
    """Convert seconds to the minutes of the form, from which `seconds_of` gives the same seconds."""
    if seconds is None or seconds % _MINUTE == 0:
        return seconds and seconds // _MINUTE
    return round(seconds / _MINUTE, 3)


def seconds_of(minutes: float | None) -> int | None:
    return None if minutes is None else round(minutes * _MINUTE)


def _number(definition: FieldDefinition, **bounds: Any) -> forms.Field:
    """Return an optional field with the label and bounds of the definition."""
    kind = forms.IntegerField if definition.kind is int else forms.FloatField
    options = {"min_value": definition.minimum, "max_value": definition.maximum, **bounds}
    return kind(required=False, label=definition.label, **options)


def _dry_run(definition: FieldDefinition) -> forms.Field:
    return forms.BooleanField(required=False, label=definition.label, help_text=definition.help)


class StepForm(forms.Form):
    auto_promote = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        definitions = fields_of(Step)
        for column in _STEP_COLUMNS:
            definition = definitions[column.source]
            most = definition.maximum
            if column.is_in_minutes:
                self.fields[column.name] = forms.FloatField(
                    required=False,
                    label=definition.label,
                    min_value=column.least,
                    max_value=None if most is None else most / _MINUTE,
                )
            else:
                self.fields[column.name] = _number(definition, min_value=column.least)
        self.fields["auto_promote"].label = definitions["auto_promote"].label

    def clean(self) -> dict[str, Any]:
        """Check what the service says in seconds, in the unit of the form."""
        data = self.cleaned_data
        deadline, soak = data.get("deadline_minutes"), data.get("soak_minutes") or 0
        if deadline is not None and deadline < soak + 1:
            self.add_error(
                "deadline_minutes", f"Enter at least {soak + 1:g} minutes: the soak and one more."
            )
        return data

    @property
    def cells(self) -> list[BoundField]:
        return [self[column.name] for column in _STEP_COLUMNS]

    @property
    def units(self) -> list[tuple[BoundField, str, bool]]:
        """The cells of the row, each with its unit and whether it is a whole number."""
        return [
            (self[column.name], column.unit, not column.is_in_minutes) for column in _STEP_COLUMNS
        ]

    @property
    def is_spare(self) -> bool:
        """Whether the row is empty and without errors. It is hidden until someone adds a step."""
        return not any(cell.value() or cell.errors for cell in self.cells)

    def to_json(self) -> dict[str, Any] | None:
        data = self.cleaned_data
        if not data.get("weight"):
            return None
        return {
            "weight": data["weight"],
            "soak_seconds": seconds_of(data["soak_minutes"]) or 0,
            "min_requests": data["min_requests"] or 0,
            "auto_promote": data["auto_promote"],
            "deadline_seconds": seconds_of(data["deadline_minutes"]),
        }


class QueryForm(forms.Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        definitions = fields_of(QueryGuard)
        for name in ("name", "query"):
            length = definitions[name].max_length
            self.fields[name] = forms.CharField(required=False, max_length=length)
        for name in ("min", "max", "breaches"):
            self.fields[name] = _number(definitions[name])
        self.fields["dry_run"] = _dry_run(definitions["dry_run"])

    @property
    def is_spare(self) -> bool:
        """Whether the row is empty and without errors. It is hidden until someone adds a query."""
        cells = [self[name] for name in ("name", "query", "min", "max")]
        return not any(cell.value() not in (None, "") or cell.errors for cell in cells)

    def to_json(self) -> dict[str, Any] | None:
        data = self.cleaned_data
        if not data.get("name") and not data.get("query"):
            return None
        return {"metric": "promql", **data}


# Fixed numbers of rows, so that they work without JavaScript too.
StepFormSet = formset_factory(StepForm, extra=MOST_ROWS, max_num=MOST_ROWS, absolute_max=MOST_ROWS)
QueryFormSet = formset_factory(
    QueryForm, extra=MOST_ROWS, max_num=MOST_ROWS, absolute_max=MOST_ROWS
)


class GuardForm(forms.Form):
    """The limits of one guard. Both empty means no guard. The prefix is its name."""

    def __init__(self, data: Any, *, kind: CounterKind | PercentileKind, initial: Any) -> None:
        super().__init__(data, prefix=kind.name, initial=initial)
        self.label, self.source, self.protects = kind.label, kind.source, kind.protects
        self.not_compared = kind.not_compared
        floor = kind.ignore_below
        self.default_floor = "auto" if floor is None else f"{floor:g}"
        self.unit, self.scale = ("%", 100.0) if kind.unit == "ratio" else (kind.unit, 1.0)
        has_max, model = kind.has_max, guard_set.LIMITS[kind.reads]
        definitions = fields_of(model)
        if has_max:
            self.fields["max"] = _number(definitions["max"], min_value=0, max_value=None)
        if not kind.not_compared:
            self.fields["max_ratio"] = _number(definitions["max_ratio"])
            self.fields["ignore_below"] = _number(
                definitions["ignore_below"], min_value=0, max_value=None
            )
        self.fields["dry_run"] = _dry_run(definitions["dry_run"])

    @property
    def most(self) -> BoundField | None:
        return self["max"] if "max" in self.fields else None

    @property
    def ratio(self) -> BoundField | None:
        return self["max_ratio"] if "max_ratio" in self.fields else None

    @property
    def floor(self) -> BoundField | None:
        return self["ignore_below"] if "ignore_below" in self.fields else None

    def describe_limits(self) -> str:
        """Describe the limits as they are typed: "at most 2%", or so many times stable. Empty means no guard."""
        unit = self.unit if self.unit == "%" else f" {self.unit}"
        parts = [
            f"{format_typed(cell.value())}{suffix}"
            for cell, suffix in ((self.most, unit), (self.ratio, " \N{MULTIPLICATION SIGN} stable"))
            if cell is not None and cell.value() not in (None, "")
        ]
        dry_run = " in a dry run" if self["dry_run"].value() else ""
        return f"at most {' and '.join(parts)}{dry_run}" if parts else ""

    def to_json(self) -> dict[str, Any] | None:
        data = dict(self.cleaned_data)
        dry_run = data.pop("dry_run")
        limits = {name: limit for name, limit in data.items() if limit is not None}
        for name in limits.keys() & {"max", "ignore_below"}:
            limits[name] /= self.scale
        return {"metric": self.prefix, **limits, "dry_run": dry_run} if limits else None


class QualityForm(forms.Form):
    """The limits of the guards on answers, 0 to 1. Empty means off."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, kind in QUALITY.items():
            self.fields[name] = forms.FloatField(
                required=False, label=kind.label, help_text=kind.figure, min_value=0, max_value=1
            )

    def count(self) -> int:
        return sum(row.value() not in (None, "") for row in self)

    def describe_limits(self) -> str:
        limits = [
            f"{lower_first(str(row.label))} at most {format_typed(row.value())}"
            for row in self
            if row.value() not in (None, "")
        ]
        return f"{', '.join(limits)}, once the service reports answers" if limits else "not guarded"

    def to_json(self) -> dict[str, float | None]:
        """Return the limits that differ from their defaults. A field that a script left out counts as its
        default.
        """
        sent = [name for name in QUALITY if self.add_prefix(name) in self.data]
        limits = {name: self.cleaned_data[name] for name in sent}
        return {name: limit for name, limit in limits.items() if limit != QUALITY[name].default}


@dataclass(frozen=True, slots=True)
class GuardGroup:
    """The guards that protect the same thing, folded under a summary in words."""

    name: str
    title: str
    rows: tuple[GuardForm, ...]

    @property
    def summary(self) -> str:
        """Name the guards that are on with their limits, those with the same limits together."""
        by_limits: dict[str, list[str]] = {}
        for row in self.rows:
            if limits := row.describe_limits():
                by_limits.setdefault(limits, []).append(lower_first(row.label))
        parts = [f"{join_words(labels)} {limits}" for limits, labels in by_limits.items()]
        return ", ".join(parts) or "not guarded"

    @property
    def has_errors(self) -> bool:
        return any(row.errors for row in self.rows)


def group_guards(rows: Sequence[GuardForm]) -> list[GuardGroup]:
    groups = [
        GuardGroup(protects.value, title, tuple(row for row in rows if row.protects is protects))
        for protects, title in _GROUPS.items()
    ]
    return [group for group in groups if group.rows]


def lower_first(label: str) -> str:
    """Begin a label in lower case inside a sentence, but not an abbreviation: "GPU memory"."""
    return label if label[:2].isupper() else f"{label[:1].lower()}{label[1:]}"


def format_typed(value: Any) -> str:
    """Format a number of a field, "1.25" or "2"; what is no number stays as it was typed."""
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


def join_words(words: Sequence[str]) -> str:
    """Join words for a sentence: "a, b and c"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def guard_forms(
    data: Any, initial: Mapping[str, Any], *, has_tokens: bool = True
) -> list[GuardForm]:
    """Return a form for each guard except queries: a plan may have several of them, in rows of their own.
    Guards on tokens are left out unless they can be measured, or the plan already has them.
    """
    kinds: tuple[CounterKind | PercentileKind, ...] = (
        *catalogue.counter_kinds(),
        *catalogue.percentile_kinds(),
    )
    return [
        GuardForm(data, kind=kind, initial=initial.get(kind.name))
        for kind in kinds
        if has_tokens or not kind.is_of_tokens or _has_limit(kind.name, data, initial)
    ]


def _has_limit(name: str, data: Any, initial: Mapping[str, Any]) -> bool:
    typed = data and any(data.get(f"{name}-{limit}") for limit in ("max", "max_ratio"))
    return bool(typed or name in initial)


def initial_guards(plan: RolloutPlan) -> dict[str, dict[str, Any]]:
    """Return the guards by name, in the units of the form."""
    return {
        guard.kind.name: {
            "max": _scaled(guard.max, guard.kind.unit),
            "max_ratio": guard.max_ratio,
            "ignore_below": _scaled(
                _stated(guard.ignore_below, guard.kind.ignore_below), guard.kind.unit
            ),
            "dry_run": guard.dry_run,
        }
        for guard in plan.guards.listed
        if not isinstance(guard, QueryGuard)
    }


def _scaled(value: float | None, unit: str) -> float | None:
    """Convert a ratio to percent, in which people read and write it."""
    return round(value * 100, 6) if value is not None and unit == "ratio" else value


def _stated(floor: float | None, default: float | None) -> float | None:
    """Return a floor that differs from the default, which the form shows as empty."""
    return None if floor == default else floor


def initial_steps(plan: RolloutPlan) -> list[dict[str, Any]]:
    steps = () if plan.kind == PlanKind.BLUE_GREEN else plan.steps
    return [
        {
            "weight": step.weight,
            "soak_minutes": minutes_of(step.soak_seconds),
            "min_requests": step.min_requests,
            "auto_promote": step.auto_promote,
            "deadline_minutes": minutes_of(step.deadline_seconds),
        }
        for step in steps[:MOST_ROWS]
    ]


def rows_of(forms_: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for form in forms_ if (row := form.to_json()) is not None]
