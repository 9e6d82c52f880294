"""The form of a pipeline of one node; the API takes several nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django import forms
from django.forms import BoundField

from deployments.pipelines.domain.pipeline_spec import (
    LONGEST_CONDITION,
    LONGEST_NAME,
    ROOT,
    NodeKind,
    PipelineSpec,
)
from portal.ui.service_form import CommentForm

MOST_ROWS: Final = 6
_FIELDS: Final = ("deployment", "label", "weight", "condition", "required")
# The domain's name of a field, and the form's.
_NAMES: Final = {
    "deployment": "deployment",
    "name": "label",
    "weight": "weight",
    "condition": "condition",
    "is_required": "required",
    "node": "deployment",
}


@dataclass(frozen=True, slots=True)
class KindDescription:
    name: str
    label: str
    what: str
    answer: str


KINDS: Final = (
    KindDescription(
        NodeKind.ENSEMBLE.value,
        "Ensemble",
        "Every deployment gets the request at the same time.",
        "One answer that contains each answer under the name of its step.",
    ),
    KindDescription(
        NodeKind.SPLITTER.value,
        "Splitter",
        "Each request goes to one deployment, drawn by weight.",
        "That deployment's answer.",
    ),
    KindDescription(
        NodeKind.SWITCH.value,
        "Switch",
        "Each request goes to the first step whose condition it meets.",
        "That deployment's answer; 404 when none is met.",
    ),
    KindDescription(
        NodeKind.SEQUENCE.value,
        "Sequence",
        "The deployments get the request one after another. A condition checks the previous answer.",
        "The last answer. If a condition is not met, the pipeline ends with the previous answer.",
    ),
)


@dataclass(frozen=True, slots=True)
class StepRow:
    number: int
    deployment: BoundField
    label: BoundField
    weight: BoundField
    condition: BoundField
    required: BoundField

    @property
    def is_spare(self) -> bool:
        fields = (self.deployment, self.label, self.weight, self.condition)
        is_first = self.number <= 2
        return not is_first and not any(field.value() or field.errors for field in fields)


_LONGEST_LIST: Final = 50


class PipelineForm(CommentForm):
    """`name` is shown only for a new one."""

    renamed: ClassVar[Mapping[str, str]] = {}

    name = forms.CharField(
        label="Name",
        max_length=30,
        help_text="The address is /team/name, like that of a deployment.",
        error_messages={"required": "Enter a name, for example 'both'."},
    )

    def __init__(
        self, *args: Any, kind: NodeKind, deployments: Sequence[str], is_new: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        # More than a list to choose from holds: they are typed, with suggestions.
        self.suggested = deployments if len(deployments) > _LONGEST_LIST else ()
        if not is_new:
            del self.fields["name"]
        choices = [("", "none"), *((name, name) for name in deployments)]
        for number in range(1, MOST_ROWS + 1):
            self.fields[f"deployment_{number}"] = forms.ChoiceField(
                choices=choices, required=False, label=f"Step {number}, deployment"
            )
            self.fields[f"label_{number}"] = forms.CharField(
                max_length=LONGEST_NAME, required=False
            )
            self.fields[f"weight_{number}"] = forms.IntegerField(required=False)
            self.fields[f"condition_{number}"] = forms.CharField(
                max_length=LONGEST_CONDITION, required=False
            )
            self.fields[f"required_{number}"] = forms.BooleanField(required=False)

    @property
    def rows(self) -> Iterator[StepRow]:
        for number in range(1, MOST_ROWS + 1):
            yield StepRow(number, *(self[f"{name}_{number}"] for name in _FIELDS))

    def _filled_rows(self) -> list[int]:
        return [
            number
            for number in range(1, MOST_ROWS + 1)
            if self.cleaned_data.get(f"deployment_{number}")
        ]

    def spec(self) -> dict[str, Any]:
        """As deployments.pipelines.domain.pipeline_spec reads it."""
        data = self.cleaned_data
        steps = [
            {
                "name": data[f"label_{number}"],
                "deployment": data[f"deployment_{number}"],
                "weight": data[f"weight_{number}"] if self.kind == NodeKind.SPLITTER else None,
                "condition": data[f"condition_{number}"] if _has_condition(self.kind) else "",
                "is_required": data[f"required_{number}"],
            }
            for number in self._filled_rows()
        ]
        return {"nodes": [{"name": ROOT, "kind": self.kind.value, "steps": steps}]}

    def show_problems(self, fields: Mapping[str, str]) -> None:
        """nodes.0.steps.1.weight belongs to the second filled row."""
        filled = self._filled_rows()
        for path, problem in fields.items():
            parts = path.split(".")
            if len(parts) == 5 and int(parts[3]) < len(filled):
                name = f"{_NAMES.get(parts[4], 'deployment')}_{filled[int(parts[3])]}"
                self.add_error(name, problem)
            elif path in self.fields:
                self.add_error(path, problem)


def _has_condition(kind: NodeKind) -> bool:
    return kind in (NodeKind.SWITCH, NodeKind.SEQUENCE)


def initial_of(spec: PipelineSpec) -> dict[str, Any]:
    initial: dict[str, Any] = {}
    for number, step in enumerate(spec.root.steps, start=1):
        initial |= {
            f"deployment_{number}": step.deployment,
            f"label_{number}": step.name,
            f"weight_{number}": step.weight,
            f"condition_{number}": step.condition,
            f"required_{number}": step.is_required,
        }
    return initial
