"""The rows of the pipeline form: its steps. Fields have the names that the pipeline's spec has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.forms import formset_factory

from deployments.pipelines.domain.pipeline_spec import LONGEST_CONDITION, LONGEST_NAME, NodeKind

MOST_ROWS: Final = 6
_LEAST_ROWS: Final = 2
_TYPED: Final = ("deployment", "name", "weight", "condition")
_WITH_CONDITION: Final = (NodeKind.SWITCH, NodeKind.SEQUENCE)


class PipelineStepForm(forms.Form):
    name = forms.CharField(max_length=LONGEST_NAME, required=False)
    weight = forms.IntegerField(required=False)
    condition = forms.CharField(max_length=LONGEST_CONDITION, required=False)
    is_required = forms.BooleanField(required=False)

    def __init__(self, *args: Any, deployments: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "none"), *((name, name) for name in deployments)]
        self.fields["deployment"] = forms.ChoiceField(choices=choices, required=False)

    @property
    def number(self) -> int:
        """The row's number from 1, as the page counts; the prefix ends with Django's number, from 0."""
        return int(str(self.prefix).rpartition("-")[2]) + 1

    @property
    def is_spare(self) -> bool:
        """Whether the row is beyond the required ones, empty and without errors. It is hidden until someone
        adds a step.
        """
        is_needed = self.number <= _LEAST_ROWS
        return not is_needed and not any(self[name].value() or self[name].errors for name in _TYPED)

    @property
    def is_filled(self) -> bool:
        return bool(self.cleaned_data.get("deployment"))

    def to_json(self, kind: NodeKind) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "name": data["name"],
            "deployment": data["deployment"],
            "weight": data["weight"] if kind == NodeKind.SPLITTER else None,
            "condition": data["condition"] if kind in _WITH_CONDITION else "",
            "is_required": data["is_required"],
        }


# A fixed number of rows, so that they work without JavaScript too.
StepFormSet = formset_factory(
    PipelineStepForm, extra=MOST_ROWS, max_num=MOST_ROWS, absolute_max=MOST_ROWS
)
