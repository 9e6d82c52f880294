"""Forms of the registry's pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django import forms

from deployments.registry.domain import declarations, declared_tensors
from deployments.registry.domain.declarations import Declaration
from deployments.registry.domain.metadata import metadata_text
from deployments.registry.domain.metadata.version_metadata import (
    DIRECTIONS,
    LABELS,
    METRICS,
    TEXTS,
)
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH
from deployments.sizing.domain.memory import BITS
from portal.core.definitions import Rejected
from portal.ui.service_form import ServiceForm

# Only for external weights: for an uploaded file they are read from it.
REFERENCE_KEYS = ("parameters_millions", "dtype", "context_length")
BATCHING_CHOICES = (("", "Not declared"), ("yes", "Yes"), ("no", "No"))


class MetadataForm(ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = {
        f"metadata.{name}": name for name in (*TEXTS, METRICS, LABELS)
    } | {f"metadata.{DIRECTIONS}": METRICS}

    metrics = forms.CharField(
        required=False,
        label="Metrics",
        help_text="One per line: mAP = 0.52. Add (lower is better) or (higher is better) where the "
        "name does not say it.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
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
    licence = forms.CharField(
        required=False, max_length=500, label="Licence", help_text="For example Apache-2.0."
    )
    intended_use = forms.CharField(required=False, max_length=500, label="Intended use")
    notes = forms.CharField(required=False, max_length=500, label="Notes")
    labels = forms.CharField(
        required=False,
        label="Labels",
        help_text="One per line: precision = int8, or a key alone.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    readme = forms.CharField(
        required=False,
        label="README",
        help_text="Markdown. HTML is shown as text.",
        widget=forms.Textarea(attrs={"rows": 8}),
    )

    def metadata(self) -> dict[str, Any]:
        """Return the metadata as entered; the service cleans it."""
        values: dict[str, Any] = {name: self.cleaned_data[name] for name in TEXTS}
        values |= metadata_text.parse_metrics(self.cleaned_data["metrics"])
        return values | {LABELS: metadata_text.parse_labels(self.cleaned_data["labels"])}

    @classmethod
    def initial_of(cls, metadata: Mapping[str, Any], readme: str) -> dict[str, Any]:
        return {name: metadata.get(name, "") for name in TEXTS} | {
            METRICS: metadata_text.format_metrics(metadata),
            LABELS: metadata_text.format_labels(metadata),
            "readme": readme,
        }


DECLARED_FIELDS: Final = ("largest_inputs", "inputs", "outputs", "compute_capability")


class DeclareForm(ServiceForm):
    """The form that declares batching and input sizes, which the file does not contain."""

    supports_batching = forms.ChoiceField(
        required=False,
        choices=BATCHING_CHOICES,
        label="Supports batching",
        help_text="Used if the checks can't detect it. “No” turns batching off.",
    )
    max_batch_size = forms.IntegerField(
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

    inputs = forms.CharField(
        required=False,
        label="Inputs",
        help_text="Only where the file does not state them (TorchScript, TensorRT). One per line, with "
        f"the batch dimension: {declared_tensors.EXAMPLE}",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    outputs = forms.CharField(
        required=False,
        label="Outputs",
        help_text="Same form as inputs, in the order in which the model returns them.",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    compute_capability = forms.CharField(
        required=False,
        max_length=10,
        label="Compute capability",
        help_text="GPU that the TensorRT plan was built for: 7.5 for T4, 8.6 for A10G, 8.9 for L4.",
    )

    def clean_inputs(self) -> list[dict[str, Any]]:
        return self._tensors("inputs")

    def clean_outputs(self) -> list[dict[str, Any]]:
        return self._tensors("outputs")

    def _tensors(self, name: str) -> list[dict[str, Any]]:
        try:
            rows = declared_tensors.parse(self.cleaned_data[name], field=name)
        except Rejected as error:
            raise forms.ValidationError(str(error)) from error
        return [row.to_json() for row in rows]

    def clean_largest_inputs(self) -> dict[str, tuple[int, ...]]:
        try:
            return declarations.parse_sizes(self.cleaned_data["largest_inputs"])
        except Rejected as error:
            raise forms.ValidationError(str(error)) from error

    def get_arguments(self) -> dict[str, Any]:
        """Return the arguments of the service."""
        choices = {"yes": True, "no": False}
        return {
            "supports_batching": choices.get(self.cleaned_data["supports_batching"]),
            "max_batch_size": self.cleaned_data["max_batch_size"],
            **{name: self.cleaned_data[name] for name in DECLARED_FIELDS},
        }

    @classmethod
    def initial_of_declared(cls, declared: Declaration) -> dict[str, Any]:
        choices = {True: "yes", False: "no", None: ""}
        return {
            "supports_batching": choices[declared.supports_batching],
            "max_batch_size": declared.max_batch_size,
            "largest_inputs": declarations.format_sizes(declared),
            "inputs": declared_tensors.format_lines(declared.inputs),
            "outputs": declared_tensors.format_lines(declared.outputs),
            "compute_capability": declared.compute_capability,
        }


class UploadForm(DeclareForm, MetadataForm):
    """The form of an upload, sent by static/js/upload.js through the API."""

    team = forms.CharField(required=False, widget=forms.HiddenInput)
    model = forms.CharField(
        max_length=40,
        label="Model",
        help_text="Lowercase letters, digits and '-'. A new name creates a new model.",
    )

    field_order = ("team", "model")


class ReferenceForm(MetadataForm):
    """The form that registers a version by reference, with the metadata of its external weights."""

    renamed: ClassVar[Mapping[str, str]] = {
        **MetadataForm.renamed,
        **{f"metadata.{key}": key for key in REFERENCE_KEYS},
    }

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
        choices=[("", "Not set"), *((name, name) for name in BITS)],
    )
    context_length = forms.CharField(
        required=False,
        max_length=20,
        label="Context length",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "data-unit": "tokens"}),
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
