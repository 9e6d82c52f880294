"""The form of a pipeline of one node; the API takes several nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django import forms

from deployments.pipelines.domain.pipeline_spec import ROOT, NodeKind, PipelineSpec
from deployments.pipelines.web.step_rows import PipelineStepForm, StepFormSet
from portal.ui.service_form import CommentForm


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
        "That deployment's answer, or 404 if no condition is met.",
    ),
    KindDescription(
        NodeKind.SEQUENCE.value,
        "Sequence",
        "The deployments get the request one after another. A condition checks the previous answer.",
        "The last answer. If a condition is not met, the pipeline ends with the previous answer.",
    ),
)


_LONGEST_LIST: Final = 50


class PipelineForm(CommentForm):
    """The form of a pipeline. `name` is shown only for a new one."""

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
        data = self.data if self.is_bound else None
        self.steps = StepFormSet(
            data,
            prefix="steps",
            initial=self.initial.get("steps"),
            form_kwargs={"deployments": deployments},
        )

    def is_valid(self) -> bool:
        # Both, so that every row shows its errors.
        return all([super().is_valid(), self.steps.is_valid()])

    def _filled(self) -> list[PipelineStepForm]:
        return [row for row in self.steps if row.is_filled]

    def spec(self) -> dict[str, Any]:
        """Return the spec as deployments.pipelines.domain.pipeline_spec reads it."""
        steps = [row.to_json(self.kind) for row in self._filled()]
        return {"nodes": [{"name": ROOT, "kind": self.kind.value, "steps": steps}]}

    def show_problems(self, fields: Mapping[str, str]) -> None:
        """Show problems at their rows: nodes.0.steps.1.weight belongs to the second filled row."""
        filled = self._filled()
        for path, problem in fields.items():
            parts = path.split(".")
            if len(parts) == 5 and int(parts[3]) < len(filled):
                row = filled[int(parts[3])]
                row.add_error(parts[4] if parts[4] in row.fields else "deployment", problem)
            elif path in self.fields:
                self.add_error(path, problem)


def initial_of(spec: PipelineSpec) -> dict[str, Any]:
    steps = [
        {
            "deployment": step.deployment,
            "name": step.name,
            "weight": step.weight,
            "condition": step.condition,
            "is_required": step.is_required,
        }
        for step in spec.root.steps
    ]
    return {"steps": steps}
