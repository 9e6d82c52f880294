"""Forms that ask for a change of a deployment that exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django import forms
from django.forms import BoundField

from deployments.models import Deployment, ModelVersion, Revision
from deployments.web.service_forms import CommentForm

MOST_ROWS = 6
# Share in percent, soak in seconds, requests that the candidate must have answered.
DEFAULT_STEPS = ((5, 600, 100), (25, 900, 500), (50, 900, 1000), (100, 0, 0))
_PARTS = ("weight", "soak", "requests")


@dataclass(frozen=True, slots=True)
class StepCell:
    field: BoundField
    unit: str
    unit_title: str
    least: int


class CanaryForm(CommentForm):
    renamed: ClassVar[Mapping[str, str]] = {"version_id": "version"}

    version = forms.ChoiceField(
        label="Candidate", error_messages={"required": "Choose the version to try."}
    )

    def __init__(self, *args: Any, versions: Sequence[ModelVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [(str(version.pk), _version_label(version)) for version in versions]
        cast("forms.ChoiceField", self.fields["version"]).choices = offered
        for index in range(MOST_ROWS):
            default = DEFAULT_STEPS[index] if index < len(DEFAULT_STEPS) else (None, None, None)
            for part, value in zip(_PARTS, default, strict=True):
                least = 1 if part == "weight" else 0
                self.fields[f"{part}_{index}"] = forms.IntegerField(
                    required=False, initial=value, min_value=least
                )

    def step_rows(self) -> Iterator[list[StepCell]]:
        named = (("%", "Share of requests", 1), ("s", "Soak", 0), ("requests", "At least", 0))
        for index in range(MOST_ROWS):
            yield [
                StepCell(self[f"{part}_{index}"], unit, title, least)
                for part, (unit, title, least) in zip(_PARTS, named, strict=True)
            ]

    def steps(self) -> list[dict[str, int]]:
        """Rows without a share are left out."""
        data = self.cleaned_data
        return [
            {
                "weight": data[f"weight_{index}"],
                "soak_seconds": data[f"soak_{index}"] or 0,
                "min_requests": data[f"requests_{index}"] or 0,
            }
            for index in range(MOST_ROWS)
            if data.get(f"weight_{index}")
        ]

    @property
    def steps_error(self) -> str:
        return self.refusal.fields.get("steps", "") if self.refusal else ""


class RollBackForm(CommentForm):
    renamed: ClassVar[Mapping[str, str]] = {"revision_number": "revision"}

    revision = forms.ChoiceField(
        label="Go back to", error_messages={"required": "Choose a revision."}
    )

    def __init__(self, *args: Any, revisions: Sequence[Revision], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [
            (str(revision.number), f"r{revision.number} · {revision.version.label}")
            for revision in revisions
        ]
        cast("forms.ChoiceField", self.fields["revision"]).choices = offered


class RetireForm(CommentForm):
    confirmation = forms.CharField(
        label="Name of the deployment",
        help_text="Type it to confirm: its address answers no more.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, deployment: Deployment, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = deployment.name

    def clean_confirmation(self) -> str:
        typed: str = self.cleaned_data["confirmation"].strip()
        if typed != self._name:
            raise forms.ValidationError(f"Type {self._name} to confirm.")
        return typed


def _version_label(version: ModelVersion) -> str:
    accuracy = version.metadata.get("accuracy")
    return f"{version.label} · accuracy {accuracy}" if accuracy else version.label
