"""The form of a rollout plan: candidate, kind, rows of steps and guards, and what to do at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from django import forms
from django.forms import BoundField

from deployments.guards.domain.promql import PLACEHOLDERS
from deployments.models import ModelVersion
from deployments.plans.domain.rollout_plan import (
    DRAIN_SECONDS,
    LONGEST_WARMUP_SECONDS,
    WATCH_SECONDS,
    PlanKind,
    PlanSettings,
    RolloutPlan,
)
from deployments.plans.web import plan_rows
from deployments.plans.web.plan_rows import (
    GuardGroup,
    QualityForm,
    QueryFormSet,
    StepFormSet,
)
from portal.core.definitions import fields_of
from portal.core.errors import DomainError
from portal.ui.service_form import CommentForm

KINDS: Final = (
    (PlanKind.CANARY.value, "Canary", "traffic moves in steps"),
    (PlanKind.BLUE_GREEN.value, "Blue/green", "checked with no traffic, then all traffic at once"),
    (PlanKind.SHADOW.value, "Shadow", "mirrored requests, responses discarded"),
)
_SETTINGS: Final = fields_of(PlanSettings)
# The setting of the plan that each field is labelled as.
_SOURCES: Final[Mapping[str, str]] = {
    "move_alias": "move_alias",
    "drain_seconds": "drain_seconds",
    "warmup_seconds": "warmup_seconds",
    "watch_minutes": "watch_seconds",
    "has_baseline": "has_baseline",
}
# Fields of the plan that people fill in whatever plan they begin with.
KEPT_FIELDS: Final = ("move_alias", "drain_seconds", "warmup_seconds")
_PLAN_FIELDS: Final = (
    "kind",
    "is_strict",
    "is_robust",
    "has_baseline",
    "watch_minutes",
    *KEPT_FIELDS,
)


@dataclass(frozen=True, slots=True)
class KindChoice:
    """A kind of plan in the form. `off` says why it cannot be chosen."""

    name: str
    label: str
    hint: str
    off: str = ""


def kinds(*, off: Mapping[str, str] | None = None) -> tuple[KindChoice, ...]:
    reasons = off or {}
    return tuple(
        KindChoice(name, label, hint, reasons.get(name, "")) for name, label, hint in KINDS
    )


class PlanForm(CommentForm):
    """The form of a rollout plan. `initial` may have rows: `steps` and `queries` are lists, `guards` and
    `quality` by metric.
    """

    renamed: ClassVar[Mapping[str, str]] = {
        "version_id": "version",
        "name": "keep_as",
        "watch_seconds": "watch_minutes",
    }

    version = forms.ChoiceField(label="Candidate", error_messages={"required": "Choose a version."})
    has_plan = forms.BooleanField(required=False, widget=forms.HiddenInput)
    kind = forms.ChoiceField(required=False, choices=[(name, label) for name, label, _ in KINDS])
    is_strict = forms.BooleanField(required=False)
    is_robust = forms.BooleanField(required=False)
    has_baseline = forms.BooleanField(required=False)
    move_alias = forms.CharField(required=False, max_length=_SETTINGS["move_alias"].max_length)
    drain_seconds = forms.IntegerField(
        required=False,
        min_value=DRAIN_SECONDS,
        widget=forms.NumberInput(attrs={"data-unit": "s"}),
    )
    warmup_seconds = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=LONGEST_WARMUP_SECONDS,
        widget=forms.NumberInput(attrs={"data-unit": "s"}),
    )
    watch_minutes = forms.FloatField(
        required=False,
        min_value=0,
        widget=forms.NumberInput(attrs={"data-unit": "min", "step": "any"}),
    )
    keep_as = forms.CharField(label="Save as template", required=False, max_length=60)

    def __init__(
        self,
        *args: Any,
        versions: Sequence[ModelVersion],
        has_tokens: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._shown_in_rows: set[str] = set()
        offered = [(str(version.pk), _version_label(version)) for version in versions]
        cast("forms.ChoiceField", self.fields["version"]).choices = offered
        for name, source in _SOURCES.items():
            field, definition = self.fields[name], _SETTINGS[source]
            field.label, field.help_text = definition.label, definition.help
        data, initial = (self.data, {}) if self.is_bound else (None, self.initial)
        self.steps = StepFormSet(data, prefix="steps", initial=initial.get("steps"))
        self.queries = QueryFormSet(data, prefix="queries", initial=initial.get("queries"))
        guards = initial.get("guards", {})
        self.guards = plan_rows.guard_forms(data, guards, has_tokens=has_tokens)
        self.quality = QualityForm(data, prefix="quality", initial=initial.get("quality"))

    def is_valid(self) -> bool:
        rows: list[Any] = [self.steps, self.queries, *self.guards, self.quality]
        # Each of them, so that every row shows its errors.
        return all([super().is_valid(), *(form.is_valid() for form in rows)])

    def steps_json(self) -> list[dict[str, Any]]:
        """Return the rows with a weight. Blue/green has one step without traffic, which is the default."""
        if self.kind_value() == PlanKind.BLUE_GREEN:
            return []
        return plan_rows.rows_of(self.steps)

    def plan_json(self) -> dict[str, Any]:
        data = self.cleaned_data
        if not data.get("has_plan"):
            return {}
        return {
            "kind": self.kind_value(),
            "has_baseline": data["has_baseline"],
            "guards": [*plan_rows.rows_of(self.guards), *plan_rows.rows_of(self.queries)],
            "analysis": {"is_strict": data["is_strict"], "is_robust": data["is_robust"]},
            "quality": self.quality.to_json(),
            "move_alias": data["move_alias"].strip(),
            "drain_seconds": data["drain_seconds"] or DRAIN_SECONDS,
            "warmup_seconds": data["warmup_seconds"],
            "watch_seconds": _default(plan_rows.seconds_of(data["watch_minutes"]), WATCH_SECONDS),
        }

    def clean_kind(self) -> str:
        """Check the kind. That of a template may be off here; then none is chosen, and another is no default."""
        kind: str = self.cleaned_data["kind"]
        if self.cleaned_data.get("has_plan") and not kind:
            raise forms.ValidationError("Choose a rollout kind.")
        return kind

    def kind_value(self) -> str:
        return self.cleaned_data.get("kind") or PlanKind.CANARY.value

    def query_count(self) -> int:
        return sum(not row.is_spare for row in self.queries)

    @property
    def placeholders(self) -> list[tuple[str, str]]:
        return [(f"${name}", meaning) for name, meaning in PLACEHOLDERS.items()]

    @property
    def guard_groups(self) -> list[GuardGroup]:
        return plan_rows.group_guards(self.guards)

    @property
    def queries_summary(self) -> str:
        count = self.query_count()
        return (
            "none" if not count else "1 PromQL query" if count == 1 else f"{count} PromQL queries"
        )

    @property
    def judging_summary(self) -> str:
        """Say against what and how strictly the candidate is judged."""
        parts = ["beside a baseline of stable" if self["has_baseline"].value() else "beside stable"]
        parts += ["strict"] if self["is_strict"].value() else []
        parts += ["for long bursts"] if self["is_robust"].value() else []
        warm_up = self["warmup_seconds"].value()
        parts.append("default warm-up" if warm_up in (None, "") else f"warm-up {warm_up} s")
        return ", ".join(parts)

    @property
    def end_summary(self) -> str:
        watch, alias = self["watch_minutes"].value(), self["move_alias"].value()
        drain = self["drain_seconds"].value() or DRAIN_SECONDS
        if watch in (None, ""):
            watch = plan_rows.minutes_of(WATCH_SECONDS)
        watched = f"watched {plan_rows.format_typed(watch)} min" if watch != "0" else "not watched"
        moved = f", moves {alias}" if alias else ""
        return f"{watched}, drained {drain} s{moved}"

    @property
    def steps_error(self) -> str:
        return self._refused("steps") or " ".join(map(str, self.steps.non_form_errors()))

    @property
    def guards_error(self) -> str:
        return self._refused("guards") or " ".join(map(str, self.queries.non_form_errors()))

    @property
    def has_step_errors(self) -> bool:
        return bool(self.steps_error) or self._has_row_errors(self.steps)

    @property
    def has_query_errors(self) -> bool:
        return self._has_row_errors(self.queries)

    @property
    def has_judging_errors(self) -> bool:
        return self._has_field_errors("has_baseline", "warmup_seconds")

    @property
    def has_end_errors(self) -> bool:
        return self._has_field_errors("move_alias", "drain_seconds", "watch_minutes")

    @property
    def is_plan_wrong(self) -> bool:
        """Whether any part of the plan has an error, so that it is shown unfolded."""
        return (
            self.has_step_errors
            or self.has_query_errors
            or self.has_judging_errors
            or self.has_end_errors
            or self._has_field_errors("kind", "keep_as")
            or bool(self.guards_error or self.quality_error)
            or any(row.errors for row in self.guards)
        )

    def _has_row_errors(self, rows: Any) -> bool:
        return self.is_bound and (any(row.errors for row in rows) or bool(rows.non_form_errors()))

    def _has_field_errors(self, *names: str) -> bool:
        return any(name in self.fields and self[name].errors for name in names)

    def refuse(self, error: DomainError) -> None:
        """Show what the service says about a guard or a step beside the field that it means."""
        super().refuse(error)
        sent = {
            "guards": [row for row in (*self.guards, *self.queries) if row.to_json() is not None],
            "steps": [row for row in self.steps if row.to_json() is not None],
        }
        for path, message in error.fields.items():
            section, _, rest = path.partition(".")
            number, _, name = rest.partition(".")
            if not number.isdecimal() or int(number) >= len(sent.get(section, ())):
                continue
            row = sent[section][int(number)]
            row.add_error(_field_for(row, name), message)
            self._shown_in_rows.add(path)

    @property
    def quality_error(self) -> str:
        is_wrong = self.quality.is_bound and bool(self.quality.errors)
        hint = "Enter a number from 0 to 1, or leave it empty for no guard." if is_wrong else ""
        return self._refused("quality") or hint

    def _refused(self, section: str) -> str:
        """Return all that the service says about the section or a field in it."""
        fields = self.refusal.fields if self.refusal else {}
        return " ".join(
            dict.fromkeys(
                message
                for path, message in fields.items()
                if path.split(".")[0] == section and path not in self._shown_in_rows
            )
        )


class TemplateForm(PlanForm):
    """The same plan without a deployment: a template of the team."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, versions=(), **kwargs)
        del self.fields["version"], self.fields["comment"]
        name = self.fields["keep_as"]
        name.label, name.required = "Name", True
        name.help_text = "Replaces a template of the same name. Existing rollouts are not affected."


def initial_of(plan: RolloutPlan) -> dict[str, Any]:
    """Return the initial values of the form that shows a plan."""
    return {
        "has_plan": True,
        "plan": plan,
        "kind": plan.kind.value,
        "has_baseline": plan.has_baseline,
        "is_strict": plan.analysis.is_strict,
        "is_robust": plan.analysis.is_robust,
        "move_alias": plan.move_alias,
        "drain_seconds": plan.drain_seconds,
        "warmup_seconds": plan.warmup_seconds,
        "watch_minutes": plan_rows.minutes_of(plan.watch_seconds),
        "steps": plan_rows.initial_steps(plan),
        "guards": plan_rows.initial_guards(plan),
        "quality": plan.quality_limits,
        "queries": [guard.to_json() for guard in plan.guards.queries],
    }


def form_data(plan: RolloutPlan, *, has_tokens: bool = True) -> dict[str, str]:
    """Return what a browser sends for the plan, by the name of the field. An unchecked box is empty."""
    form = PlanForm(versions=(), has_tokens=has_tokens, initial=initial_of(plan))
    fields: list[BoundField] = [form[name] for name in _PLAN_FIELDS]
    data = {"has_plan": "1"}
    for rows in (form.steps, form.queries):
        data[f"{rows.prefix}-TOTAL_FORMS"] = str(rows.total_form_count())
        data[f"{rows.prefix}-INITIAL_FORMS"] = str(rows.initial_form_count())
        fields += [field for row in rows for field in row]
    fields += [field for row in (*form.guards, form.quality) for field in row]
    return data | {field.html_name: _as_sent(field.value()) for field in fields}


def _as_sent(value: Any) -> str:
    return "on" if value is True else "" if value in (None, False) else str(value)


def is_plan_changed(posted: Mapping[str, str], data: Mapping[str, str]) -> bool:
    """Return whether someone changed a value of the plan, whose fields were filled with `data`."""
    rows = ("_FORMS",)
    return any(
        not is_same_value(posted.get(name, ""), value)
        for name, value in data.items()
        if name not in KEPT_FIELDS and not name.endswith(rows)
    )


def keep_typed(posted: Mapping[str, str], before: RolloutPlan | None) -> dict[str, str]:
    """Return what was typed into fields that say nothing about how careful a plan is. `before` is the plan that the
    fields were filled with.
    """
    filled = initial_of(before) if before else {}
    return {
        name: posted[name]
        for name in KEPT_FIELDS
        if name in posted and not is_same_value(posted[name], _as_sent(filled.get(name)))
    }


def is_same_value(first: str, second: str) -> bool:
    """Return whether two fields say the same: 2 is 2.0."""
    try:
        return float(first) == float(second)
    except ValueError:
        return first.strip() == second.strip()


def _field_for(row: forms.Form, name: str) -> str:
    """Return the field of the row that the service means; its first one if it means the whole row."""
    minutes = name.replace("_seconds", "_minutes")
    return next((each for each in (name, minutes) if each in row.fields), next(iter(row.fields)))


def _default(typed: int | None, default: int) -> int:
    """Return the default for an empty field. 0 is a value of its own."""
    return default if typed is None else typed


def _version_label(version: ModelVersion) -> str:
    accuracy = version.metadata.get("metrics", {}).get("accuracy")
    return f"{version.label} · accuracy {accuracy}" if accuracy else version.label
