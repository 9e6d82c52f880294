"""The rows of the plan form: steps, guards, limits on answers, and PromQL queries.

Fields follow from the definitions in the domain. A row without values is left out of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.forms import BoundField, formset_factory

from deployments.guards.domain import catalogue, guard_set
from deployments.guards.domain.answers.answer_metrics import QUALITY
from deployments.guards.domain.families.counters import CounterKind
from deployments.guards.domain.families.percentiles import PercentileKind
from deployments.guards.domain.promql import QueryGuard
from deployments.plans.domain.rollout_plan import PlanKind, RolloutPlan
from deployments.plans.domain.steps import Step
from portal.core.definitions import FieldDefinition, fields_of

MOST_ROWS: Final = 6
# Name, unit and least value of a row that people fill in.
_STEP_COLUMNS: Final = (
    ("weight", "%", 1),
    ("soak_seconds", "s", 0),
    ("min_requests", "≥", 0),
    ("deadline_seconds", "s", 60),
)


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
        for name, _, least in _STEP_COLUMNS:
            self.fields[name] = _number(definitions[name], min_value=least)
        self.fields["auto_promote"].label = definitions["auto_promote"].label

    @property
    def cells(self) -> list[BoundField]:
        return [self[name] for name, *_ in _STEP_COLUMNS]

    @property
    def units(self) -> list[tuple[BoundField, str]]:
        """The cells of the row, each with its unit."""
        return [(self[name], unit) for name, unit, _ in _STEP_COLUMNS]

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
            "soak_seconds": data["soak_seconds"] or 0,
            "min_requests": data["min_requests"] or 0,
            "auto_promote": data["auto_promote"],
            "deadline_seconds": data["deadline_seconds"],
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
        self.label, self.source = kind.label, kind.source
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

    def to_json(self) -> dict[str, float | None]:
        """Return the limits that differ from their defaults. A field that a script left out counts as its
        default.
        """
        sent = [name for name in QUALITY if self.add_prefix(name) in self.data]
        limits = {name: self.cleaned_data[name] for name in sent}
        return {name: limit for name, limit in limits.items() if limit != QUALITY[name].default}


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
    return [step.to_json() for step in steps[:MOST_ROWS]]


def rows_of(forms_: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for form in forms_ if (row := form.to_json()) is not None]
