"""The form of a rollout plan: candidate, kind, rows of steps and guards, and what to do at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from django import forms

from deployments.guards.domain import limits
from deployments.guards.domain.guard_set import PlanGuards
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
from deployments.plans.domain.steps import Step
from deployments.plans.web import plan_rows
from deployments.plans.web.plan_rows import QualityForm, QueryFormSet, StepFormSet
from portal.core.definitions import fields_of
from portal.ui.service_form import CommentForm

DEFAULT_PLAN: Final = RolloutPlan(
    steps=tuple(
        Step(weight=weight, soak_seconds=soak, min_requests=requests)
        for weight, soak, requests in ((5, 600, 100), (25, 900, 500), (50, 900, 1000), (100, 0, 0))
    )
)
DEFAULT_PLAN_OF_TOKENS: Final = DEFAULT_PLAN.model_copy(
    update={"guards": PlanGuards(limits.DEFAULTS_OF_TOKENS)}
)
KINDS: Final = (
    (PlanKind.CANARY.value, "Canary", "traffic moves in steps"),
    (PlanKind.BLUE_GREEN.value, "Blue/green", "checked with no traffic, then all traffic at once"),
    (PlanKind.SHADOW.value, "Shadow", "mirrored requests, responses discarded"),
)
_SETTINGS: Final = fields_of(PlanSettings)


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

    renamed: ClassVar[Mapping[str, str]] = {"version_id": "version", "name": "keep_as"}

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
    watch_seconds = forms.IntegerField(
        required=False,
        min_value=0,
        widget=forms.NumberInput(attrs={"data-unit": "s"}),
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
        offered = [(str(version.pk), _version_label(version)) for version in versions]
        cast("forms.ChoiceField", self.fields["version"]).choices = offered
        for name in (
            "move_alias",
            "drain_seconds",
            "warmup_seconds",
            "watch_seconds",
            "has_baseline",
        ):
            field, definition = self.fields[name], _SETTINGS[name]
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
            "watch_seconds": _default(data["watch_seconds"], WATCH_SECONDS),
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
    def steps_error(self) -> str:
        return self._refused("steps") or " ".join(map(str, self.steps.non_form_errors()))

    @property
    def guards_error(self) -> str:
        return self._refused("guards") or " ".join(map(str, self.queries.non_form_errors()))

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
                message for path, message in fields.items() if path.split(".")[0] == section
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
        "plan": plan.to_json(),
        "kind": plan.kind.value,
        "has_baseline": plan.has_baseline,
        "is_strict": plan.analysis.is_strict,
        "is_robust": plan.analysis.is_robust,
        "move_alias": plan.move_alias,
        "drain_seconds": plan.drain_seconds,
        "warmup_seconds": plan.warmup_seconds,
        "watch_seconds": plan.watch_seconds,
        "steps": plan_rows.initial_steps(plan),
        "guards": plan_rows.initial_guards(plan),
        "quality": plan.quality_limits,
        "queries": [guard.to_json() for guard in plan.guards.queries],
    }


def _default(typed: int | None, default: int) -> int:
    """Return the default for an empty field. 0 is a value of its own."""
    return default if typed is None else typed


def _version_label(version: ModelVersion) -> str:
    accuracy = version.metadata.get("metrics", {}).get("accuracy")
    return f"{version.label} · accuracy {accuracy}" if accuracy else version.label
