"""The form of a rollout plan: candidate, kind, steps, guards, and what to do at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from django import forms

from deployments.guards.domain import answer_metrics, percentiles
from deployments.guards.domain.limits import KINDS, GuardLimit, Metric
from deployments.models import ModelVersion
from deployments.plans.domain.rollout_plan import DRAIN_SECONDS, PlanKind, PlanSettings
from deployments.plans.web import prometheus_fields
from deployments.plans.web.prometheus_fields import PrometheusFields
from portal.ui.service_form import CommentForm

MOST_ROWS: Final = 6
# Share in percent, soak in seconds, requests that the candidate must have answered.
DEFAULT_STEPS: Final = tuple(
    {"weight": weight, "soak_seconds": soak, "min_requests": requests}
    for weight, soak, requests in ((5, 600, 100), (25, 900, 500), (50, 900, 1000), (100, 0, 0))
)
_COLUMNS: Final = (
    ("weight", "weight", "Traffic weight", "%", 1),
    ("soak", "soak_seconds", "Soak", "s", 0),
    ("requests", "min_requests", "Requests", "≥", 0),
    ("deadline", "deadline_seconds", "Abort after", "s", 60),
)
KIND_WORDS: Final = (
    (PlanKind.CANARY.value, "Canary", "traffic moves in steps"),
    (
        PlanKind.BLUE_GREEN.value,
        "Blue/green",
        ("checked with no traffic, then all traffic at once"),
    ),
    (PlanKind.SHADOW.value, "Shadow", "mirrored requests, responses discarded"),
)
_QUALITY: Final = (
    ("label_drift", "Label distribution", "Jensen-Shannon distance"),
    ("output_length", "Output length", "largest gap between distributions"),
    ("structured_failures", "Structured output", "increase in failure rate"),
    ("embedding_drift", "Embedding drift", "cosine distance of means"),
    ("disagreement", "Disagreement with stable", "share of golden requests"),
)


@dataclass(frozen=True, slots=True)
class KindChoice:
    """`off` says why it cannot be chosen."""

    name: str
    word: str
    hint: str
    off: str = ""


def kinds(*, off: Mapping[str, str] | None = None) -> tuple[KindChoice, ...]:
    why = off or {}
    return tuple(KindChoice(name, word, hint, why.get(name, "")) for name, word, hint in KIND_WORDS)


@dataclass(frozen=True, slots=True)
class StepCell:
    field: forms.BoundField
    unit: str
    unit_title: str
    least: int


@dataclass(frozen=True, slots=True)
class StepRow:
    cells: tuple[StepCell, ...]
    auto: forms.BoundField

    @property
    def is_spare(self) -> bool:
        """Nothing is typed in and nothing is wrong: out of sight until someone adds a step."""
        return not any(cell.field.value() or cell.field.errors for cell in self.cells)


@dataclass(frozen=True, slots=True)
class GuardRow:
    """`unit` is of `most`; a ratio is so many times the stable revision's. None: no such limit."""

    label: str
    source: str
    unit: str
    most: forms.BoundField | None
    ratio: forms.BoundField | None


@dataclass(frozen=True, slots=True)
class QualityRow:
    label: str
    effect: str
    limit: forms.BoundField


class PlanForm(PrometheusFields, CommentForm):
    renamed: ClassVar[Mapping[str, str]] = {"version_id": "version", "name": "keep_as"}

    version = forms.ChoiceField(label="Candidate", error_messages={"required": "Choose a version."})
    has_plan = forms.BooleanField(required=False, widget=forms.HiddenInput)
    kind = forms.ChoiceField(required=False, choices=[(name, word) for name, word, _ in KIND_WORDS])
    is_strict = forms.BooleanField(required=False)
    move_alias = forms.CharField(
        label="Move alias", required=False, max_length=60, help_text="Set after promotion."
    )
    drain_seconds = forms.IntegerField(
        label="Drain time",
        required=False,
        min_value=DRAIN_SECONDS,
        help_text="Pods of the replaced revision stay this long to finish open requests.",
        widget=forms.NumberInput(attrs={"data-unit": "s"}),
    )
    keep_as = forms.CharField(label="Save as template", required=False, max_length=60)

    def __init__(self, *args: Any, versions: Sequence[ModelVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [(str(version.pk), _version_label(version)) for version in versions]
        cast("forms.ChoiceField", self.fields["version"]).choices = offered
        for index in range(MOST_ROWS):
            for part, _, _, _, least in _COLUMNS:
                self.fields[f"{part}_{index}"] = forms.IntegerField(required=False, min_value=least)
            self.fields[f"auto_{index}"] = forms.BooleanField(required=False)
        for metric, limits in KINDS.items():
            if limits.has_max:
                self.fields[f"max_{metric}"] = forms.FloatField(required=False, min_value=0)
            if limits.has_ratio:
                self.fields[f"ratio_{metric}"] = forms.FloatField(required=False, min_value=1)
        for name, *_ in _QUALITY:
            self.fields[f"quality_{name}"] = forms.FloatField(
                required=False, min_value=0, max_value=1
            )

    def step_rows(self) -> Iterator[StepRow]:
        for index in range(MOST_ROWS):
            cells = tuple(
                StepCell(self[f"{part}_{index}"], unit, title, least)
                for part, _, title, unit, least in _COLUMNS
            )
            yield StepRow(cells, self[f"auto_{index}"])

    def guard_rows(self) -> Iterator[GuardRow]:
        for metric, kind in KINDS.items():
            unit = "%" if kind.unit == "ratio" else kind.unit
            yield GuardRow(
                kind.label,
                kind.source,
                unit,
                self[f"max_{metric}"] if kind.has_max else None,
                self[f"ratio_{metric}"] if kind.has_ratio else None,
            )
        for name, label in percentiles.LABELS.items():
            yield GuardRow(
                label, percentiles.SOURCE, "ms", self[f"max_{name}"], self[f"ratio_{name}"]
            )

    def quality_rows(self) -> Iterator[QualityRow]:
        for name, label, effect in _QUALITY:
            yield QualityRow(label, effect, self[f"quality_{name}"])

    def quality_count(self) -> int:
        return sum(row.limit.value() not in (None, "") for row in self.quality_rows())

    def steps(self) -> list[dict[str, Any]]:
        """Rows without a share are left out. Blue/green has one dark step, which is the default."""
        data = self.cleaned_data
        if self.kind_value() == PlanKind.BLUE_GREEN:
            return []
        return [_step_of(data, index) for index in range(MOST_ROWS) if data.get(f"weight_{index}")]

    def plan(self) -> dict[str, Any]:
        data = self.cleaned_data
        if not data.get("has_plan"):
            return {}
        return {
            "kind": self.kind_value(),
            "guards": [
                *(found for metric in Metric if len(found := _guard_of(metric, data)) > 1),
                *self.prometheus_guards(),
            ],
            "analysis": {"is_strict": data["is_strict"]},
            "quality": self._quality(),
            "move_alias": data["move_alias"].strip(),
            "drain_seconds": data["drain_seconds"] or DRAIN_SECONDS,
        }

    def _quality(self) -> dict[str, float | None]:
        """Those that differ from their defaults. Emptied is switched off; a script's form without
        the field keeps the default.
        """
        typed = {
            name: self.cleaned_data[f"quality_{name}"]
            for name, *_ in _QUALITY
            if f"quality_{name}" in self.data
        }
        return {
            name: limit
            for name, limit in typed.items()
            if limit != answer_metrics.DEFAULT_LIMITS[name]
        }

    def clean_kind(self) -> str:
        """A page on which the kind of a template is off has none chosen: never another by itself."""
        kind: str = self.cleaned_data["kind"]
        if self.cleaned_data.get("has_plan") and not kind:
            raise forms.ValidationError("Choose a rollout kind.")
        return kind

    def kind_value(self) -> str:
        return self.cleaned_data.get("kind") or PlanKind.CANARY.value

    @property
    def steps_error(self) -> str:
        return self.refusal.fields.get("steps", "") if self.refusal else ""

    @property
    def guards_error(self) -> str:
        return self.refusal.fields.get("guards", "") if self.refusal else ""

    @property
    def quality_error(self) -> str:
        typed = [row.limit.errors for row in self.quality_rows() if row.limit.errors]
        refused = self.refusal.fields.get("quality", "") if self.refusal else ""
        return refused or (
            "Enter a number from 0 to 1, or leave it empty for no guard." if typed else ""
        )


class TemplateForm(PlanForm):
    """The same plan without a deployment: what a team keeps to start from."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, versions=(), **kwargs)
        del self.fields["version"], self.fields["comment"]
        name = self.fields["keep_as"]
        name.label, name.required = "Name", True
        name.help_text = "Replaces a template of the same name. Existing rollouts are not affected."


def initial_of(steps: Sequence[Mapping[str, Any]], plan: PlanSettings) -> dict[str, Any]:
    """What the form shows of a plan: the defaults, or a template of the team."""
    shown: dict[str, Any] = {
        "has_plan": True,
        "kind": plan.kind.value,
        "is_strict": plan.analysis.is_strict,
        "move_alias": plan.move_alias,
        "drain_seconds": plan.drain_seconds,
    }
    for name, most in {**answer_metrics.DEFAULT_LIMITS, **plan.quality}.items():
        shown[f"quality_{name}"] = most
    for index, step in enumerate(steps[:MOST_ROWS] if plan.kind != PlanKind.BLUE_GREEN else ()):
        for part, name, *_ in _COLUMNS:
            shown[f"{part}_{index}"] = step.get(name)
        shown[f"auto_{index}"] = step.get("auto_promote", False)
    for limit in plan.guards:
        shown |= _shown_guard(limit)
    return shown | prometheus_fields.shown(plan)


def _shown_guard(limit: GuardLimit) -> dict[str, Any]:
    most = limit.max
    if most is not None:
        most = round(most * _scale(limit.metric), 6)
    return {f"max_{limit.metric}": most, f"ratio_{limit.metric}": limit.max_ratio}


def _step_of(data: Mapping[str, Any], index: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "weight": data[f"weight_{index}"],
        "soak_seconds": data[f"soak_{index}"] or 0,
        "min_requests": data[f"requests_{index}"] or 0,
    }
    if data[f"auto_{index}"]:
        step["auto_promote"] = True
    if data[f"deadline_{index}"]:
        step["deadline_seconds"] = data[f"deadline_{index}"]
    return step


def _guard_of(metric: Metric, data: Mapping[str, Any]) -> dict[str, Any]:
    guard: dict[str, Any] = {"metric": metric.value}
    most, ratio = data.get(f"max_{metric}"), data.get(f"ratio_{metric}")
    if most is not None:
        guard["max"] = most / _scale(metric)
    if ratio is not None:
        guard["max_ratio"] = ratio
    return guard


def _scale(metric: Metric) -> float:
    return 100.0 if KINDS[metric].unit == "ratio" else 1.0


def _version_label(version: ModelVersion) -> str:
    accuracy = version.metadata.get("accuracy")
    return f"{version.label} · accuracy {accuracy}" if accuracy else version.label
