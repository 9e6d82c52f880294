"""Forms of the registry's pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms

from deployments.registry.domain import declarations
from deployments.registry.domain.comparison import KNOWN_KEYS
from deployments.registry.domain.declarations import Declaration
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH
from deployments.sizing.domain.memory import BITS
from portal.core.definitions import Rejected
from portal.ui.service_form import ServiceForm

# Only for external weights: for an uploaded file they are read from it.
REFERENCE_KEYS = ("parameters_millions", "dtype", "context_length", "licence")
BATCHING_CHOICES = (("", "not declared"), ("yes", "yes"), ("no", "no"))


class MetadataForm(ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = {
        f"metadata.{key}": key for key in (*KNOWN_KEYS, "tags", "notes")
    }

    accuracy = forms.CharField(
        required=False,
        max_length=20,
        label="Accuracy",
        help_text="Between 0 and 1, for example 0.914.",
    )
    dataset_version = forms.CharField(required=False, max_length=500, label="Dataset version")
    trained_at = forms.CharField(
        required=False,
        max_length=40,
        label="Trained at",
        help_text="2026-11-21 or 2026-11-21T10:30",
    )
    framework = forms.CharField(required=False, max_length=500, label="Framework")
    commit = forms.CharField(required=False, max_length=64, label="Commit")
    run_url = forms.CharField(required=False, max_length=500, label="Training run")
    tags = forms.CharField(
        required=False, max_length=900, label="Tags", help_text="Comma-separated."
    )
    more = forms.CharField(
        required=False,
        label="Custom fields",
        help_text="One per line: key = value. Numbers are charted by version.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def metadata(self) -> dict[str, Any]:
        """The metadata as entered; numbers in custom fields become numbers."""
        values = {key: self.cleaned_data[key] for key in (*KNOWN_KEYS, "tags")}
        for line in self.cleaned_data["more"].splitlines():
            key, separator, value = line.partition("=")
            if separator:
                values[key.strip()] = _number_or_text(value.strip())
        return {key: value for key, value in values.items() if value not in ("", None)}

    @classmethod
    def initial_of(cls, metadata: Mapping[str, Any]) -> dict[str, Any]:
        known = {key: metadata.get(key, "") for key in KNOWN_KEYS}
        others = [k for k in metadata if k not in (*KNOWN_KEYS, "tags")]
        return known | {
            "tags": ", ".join(metadata.get("tags", [])),
            "more": "\n".join(f"{key} = {metadata[key]}" for key in others),
        }


class DeclareForm(ServiceForm):
    """Declare batching and input sizes, which the file does not contain."""

    takes_batches = forms.ChoiceField(
        required=False,
        choices=BATCHING_CHOICES,
        label="Supports batching",
        help_text="Used if the checks can't detect it. “No” turns batching off.",
    )
    largest_batch = forms.IntegerField(
        min_value=1,
        max_value=declarations.MAX_BATCH,
        initial=DEFAULT_MAX_BATCH,
        label="Max batch size",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "data-unit": "items"}),
    )
    largest_inputs = forms.CharField(
        required=False,
        label="Max input sizes",
        help_text="One per line, dimensions as in the file: image = 1 x 3 x 960 x 960. Used "
        "to estimate GPU memory.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )

    def clean_largest_inputs(self) -> dict[str, tuple[int, ...]]:
        try:
            return declarations.parse_sizes(self.cleaned_data["largest_inputs"])
        except Rejected as error:
            raise forms.ValidationError(str(error)) from error

    def declared(self) -> dict[str, Any]:
        """The arguments of the service."""
        choices = {"yes": True, "no": False}
        return {
            "takes_batches": choices.get(self.cleaned_data["takes_batches"]),
            "largest_batch": self.cleaned_data["largest_batch"],
            "largest_inputs": self.cleaned_data["largest_inputs"],
        }

    @classmethod
    def initial_of_declared(cls, declared: Declaration) -> dict[str, Any]:
        choices = {True: "yes", False: "no", None: ""}
        return {
            "takes_batches": choices[declared.takes_batches],
            "largest_batch": declared.largest_batch,
            "largest_inputs": declarations.format_sizes(declared),
        }


class UploadForm(DeclareForm, MetadataForm):
    """Sent by static/js/upload.js through the API."""

    team = forms.ChoiceField(label="Team")
    model = forms.CharField(
        max_length=40,
        label="Model",
        help_text="Lowercase letters, digits and '-'. A new name creates a new model.",
    )

    field_order = ("team", "model")

    def __init__(self, *args: Any, teams: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"] = forms.ChoiceField(
            label="Team", choices=[(slug, slug) for slug in teams]
        )


class ReferenceForm(MetadataForm):
    """Register a version by reference, with the metadata of its external weights."""

    renamed: ClassVar[Mapping[str, str]] = {
        **MetadataForm.renamed,
        **{f"metadata.{key}": key for key in REFERENCE_KEYS},
    }

    team = forms.ChoiceField(label="Team")
    model = forms.CharField(
        max_length=40,
        label="Model",
        help_text="Lowercase letters, digits and '-'. A new name creates a new model.",
    )
    source_uri = forms.CharField(
        max_length=500,
        label="Reference",
        help_text="hf://organisation/model:commit, pvc://claim/path, or "
        "oci://registry/image:tag@sha256:digest. No passwords or tokens.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "none"}),
    )
    parameters_millions = forms.CharField(
        required=False,
        max_length=20,
        label="Parameters",
        help_text="In millions: 8030 for 8 billion. Used to size the GPU.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "data-unit": "million"}),
    )
    dtype = forms.ChoiceField(
        required=False,
        label="Weight precision",
        choices=[("", "not set"), *((name, name) for name in BITS)],
    )
    context_length = forms.CharField(
        required=False,
        max_length=20,
        label="Context length",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "data-unit": "tokens"}),
    )
    licence = forms.CharField(
        required=False, max_length=500, label="Licence", help_text="For example Apache-2.0."
    )

    def __init__(self, *args: Any, teams: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"] = forms.ChoiceField(
            label="Team", choices=[(slug, slug) for slug in teams]
        )

    def metadata(self) -> dict[str, Any]:
        own = {key: self.cleaned_data[key] for key in REFERENCE_KEYS if self.cleaned_data[key]}
        return super().metadata() | own


class AliasForm(ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = {"version": "alias"}

    alias = forms.CharField(max_length=60, label="Alias", help_text="champion, staging …")
    is_protected = forms.BooleanField(
        required=False,
        label="Protected: only leads can move it",
        initial=False,
        help_text="champion is always protected when created.",
    )


class ReleaseForm(ServiceForm):
    reason = forms.CharField(max_length=2000, label="Reason this is safe")
    days = forms.IntegerField(
        min_value=1,
        max_value=365,
        initial=30,
        label="Valid for",
        widget=forms.NumberInput(attrs={"data-unit": "days"}),
    )


class ReasonForm(ServiceForm):
    reason = forms.CharField(required=False, max_length=2000, label="Reason")


class ModelForm(ServiceForm):
    task = forms.CharField(required=False, max_length=60, label="Task")
    description = forms.CharField(
        required=False, label="Description", widget=forms.Textarea(attrs={"rows": 8})
    )


def _number_or_text(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
