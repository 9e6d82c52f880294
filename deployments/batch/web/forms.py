"""The forms of batch jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.core.validators import RegexValidator
from django.forms import BoundField

from deployments.batch.domain import places
from deployments.batch.domain.settings import PLACEMENT_FIELDS, BatchSettings
from deployments.batch.services.requests import BatchDraft
from deployments.models import ModelVersion
from fleet.capacity.selectors.capacity import SingleGpu
from fleet.gpus.domain import shares
from portal.core import definitions
from portal.ui.service_form import CommentForm, ServiceForm

_FIELDS: Final = definitions.fields_of(BatchSettings)
_OF_SHARE: Final = ("instance_type", "gpu_resource", "device_claims")
_OF_CLAIM: Final = ("claim_product", "claim_memory_gib", "claim_tolerations")
_CLAIMED: Final = "claimed"
_QUEUE: Final = "queue"
_OTHERS: Final = tuple(name for name in _FIELDS if name not in _OF_SHARE)
# Beside the GPU and the capacity type, which each job chooses.
_PLACEMENT: Final = tuple(name for name in PLACEMENT_FIELDS if name not in (*_OF_SHARE, "capacity"))
# Of the placement, and of jobs that drain a queue: left out they are what they are by default.
OPTIONAL: Final = (
    *("consumer_group", "dead_letters", "tries"),
    *("idle_seconds", "messages_per_worker", "secret"),
    *_PLACEMENT,
)


_LABEL: Final = RegexValidator(
    r"^[^:\x00]+:[0-9]{1,9}$", "Enter the model and the number of its version, as in detector:3."
)


class BatchForm(ServiceForm):
    """The form of a new batch job. `gpus` is one choice of what the `clusters` offer: cluster, instance type, GPU
    resource, and whether it is claimed.

    `queues` are the LocalQueues of the team by cluster, of those that have Kueue. `area` is the team's prefix in
    S3.
    """

    renamed: ClassVar = {
        "version": "model_version",
        "cluster": "gpus",
        "instance_type": "gpus",
        "gpu_resource": "gpus",
        "device_claims": "gpus",
    }

    input = forms.CharField(
        max_length=places.MAX_LENGTH,
        label="Address of the rows",
        help_text="Filled in by an upload. Also a file or a prefix/ in S3, or a queue: "
        "redis://redis.TEAM.svc:6379/STREAM, an SQS queue URL, kafka://kafka.TEAM.svc:9092/TOPIC.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "none"}),
    )
    model_version = forms.ChoiceField(label="Model version")
    name = forms.CharField(max_length=40, help_text="Lowercase letters, digits and hyphens.")
    output = forms.CharField(
        max_length=places.MAX_LENGTH,
        required=False,
        help_text="Leave empty for a prefix named after the job. Otherwise enter an empty prefix, or for a Redis stream another stream of the same server.",
    )
    gpus = forms.ChoiceField(label="GPU", help_text="One for each worker.")

    def __init__(
        self,
        *args: Any,
        versions: list[ModelVersion],
        most_versions: int,
        clusters: Mapping[str, Sequence[SingleGpu]],
        queues: Mapping[str, Sequence[str]],
        area: str,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.fields["input"].widget.attrs["placeholder"] = f"{area}rows.jsonl"
        self.fields["output"].widget.attrs["placeholder"] = f"{area}scores/NAME/"
        # More than a list to choose from holds: they are typed, with the newest as suggestions.
        self.suggested = (
            [v.label for v in versions[:most_versions]] if len(versions) > most_versions else []
        )
        if self.suggested:
            self.fields["model_version"] = forms.CharField(
                label="Model version",
                max_length=200,
                validators=[_LABEL],
                help_text="Model and number, for example detector:3. The newest are suggested.",
                widget=forms.TextInput(attrs={"list": "versions", "autocomplete": "off"}),
            )
        chosen: Any = self.fields["model_version"]
        if not self.suggested:
            chosen.choices = [(v.label, v.label) for v in versions]
        if not versions:
            chosen.help_text = (
                "The team has no ready version that Triton serves. Upload a model first."
            )
        offered: Any = self.fields["gpus"]
        offered.choices = _share_choices(clusters)
        # What no cluster offers is not asked for.
        has_claims = any(gpu.is_claimed for gpus in clusters.values() for gpu in gpus)
        lacking = (() if has_claims else _OF_CLAIM) + (() if queues else (_QUEUE,))
        self.settings = [name for name in _OTHERS if name not in lacking]
        for name in self.settings:
            self.fields[name] = _field(name)
        if queues:
            self.fields[_QUEUE].help_text += f" There: {_listed(queues)}."

    @property
    def placement_fields(self) -> list[tuple[BoundField, str]]:
        """The fields of the placement that the clusters know, each with its unit."""
        names = [name for name in _PLACEMENT if name in self.settings]
        return [(self[name], _FIELDS[name].unit) for name in names]

    @property
    def chosen_version(self) -> str:
        """The label of the version that is chosen so far. Empty if none is."""
        if self.is_bound:
            return str(self["model_version"].value() or "")
        field: Any = self.fields["model_version"]
        return "" if self.suggested else next((value for value, _ in field.choices), "")

    @property
    def values_in_words(self) -> dict[str, str]:
        """The values of the folded fields, by the name of their fold."""
        workers, nodes, requests, hours, errors, tries, idle = (
            self[name].value()
            for name in (
                *("workers", "capacity", "requests", "hours", "error_limit"),
                *("tries", "idle_seconds"),
            )
        )
        return {
            "output": str(self["output"].value() or "named after the job, in the team's area"),
            "workers": f"{workers} on {nodes} nodes, {requests} requests in flight each",
            "limits": f"ends after {hours} h, tolerates {errors} rows without an answer",
            "queue": f"{tries} attempts for each message, workers stop after {idle} s without one",
        }

    @property
    def fields_in_error(self) -> list[str]:
        """The labels of the fields whose values give no cost."""
        return [str(self[name].label) for name in ("gpus", *self.settings) if self[name].errors]

    @property
    def workers(self) -> tuple[str, dict[str, Any]] | None:
        """The cluster and the settings of the pods as typed so far. None if one of them is not valid."""
        if not self.is_bound:
            values = {name: self.fields[name].initial for name in self.settings}
            gpus: Any = self.fields["gpus"]
            values["gpus"] = next((value for value, _ in gpus.choices), "")
        else:
            self.is_valid()
            values = {**self.cleaned_data}
            for name in OPTIONAL:
                if name in values and values[name] in (None, ""):
                    values[name] = _FIELDS[name].default
        if not values.get("gpus") or any(values.get(name) is None for name in self.settings):
            return None
        cluster, instance_type, gpu_resource, *claimed = values["gpus"].split(" ")
        pods = {name: values[name] for name in self.settings}
        return cluster, {
            **pods,
            "instance_type": instance_type,
            "gpu_resource": gpu_resource,
            "device_claims": claimed == [_CLAIMED],
        }

    @property
    def draft(self) -> BatchDraft:
        data = self.cleaned_data
        model, _, number = data["model_version"].rpartition(":")
        cluster, pods = self.workers or ("", {})
        return BatchDraft(
            name=data["name"],
            model=model,
            version=int(number),
            cluster=cluster,
            input=data["input"],
            output=data["output"],
            pods=pods,
        )


class JobDecisionForm(CommentForm):
    """The decision on a job's page."""

    ACTIONS: ClassVar = ("approve", "reject", "cancel", "resume")
    renamed: ClassVar = {"reason": "comment"}

    decision = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])


def _field(name: str) -> forms.Field:
    definition = _FIELDS[name]
    options = {
        "label": definition.label,
        "help_text": definition.help,
        "initial": definition.default,
        "required": name not in OPTIONAL,
    }
    if definition.values:
        return forms.ChoiceField(choices=list(definition.choices.items()), **options)
    if definition.kind is int:
        return forms.IntegerField(
            min_value=definition.minimum, max_value=definition.maximum, **options
        )
    return forms.CharField(max_length=definition.max_length or 40, **options)


def _listed(queues: Mapping[str, Sequence[str]]) -> str:
    names = (f"{', '.join(of_one) or 'none yet'} on {name}" for name, of_one in queues.items())
    return "; ".join(names)


def _share_choices(clusters: Mapping[str, Sequence[SingleGpu]]) -> list[tuple[str, str]]:
    choices = []
    for name, gpus in clusters.items():
        for gpu in gpus:
            value = f"{name} {gpu.instance_type} {gpu.gpu_resource}"
            text = f"{name}: {_describe_gpu(gpu)}, {gpu.instance_type}"
            if gpu.is_claimed:
                value, text = f"{value} {_CLAIMED}", f"{text} by ResourceClaim"
            choices.append((value, text))
    return choices


def _describe_gpu(gpu: SingleGpu) -> str:
    """Describe a GPU by its model: "A10G", "T4, shared" or "A100-SXM4-80GB, slice 1g.10gb"."""
    model = gpu.gpu_name.removeprefix("NVIDIA").lstrip(" -") or "GPU"
    if gpu.gpu_resource.startswith(shares.MIG_PREFIX):
        return f"{model}, slice {gpu.gpu_resource.removeprefix(shares.MIG_PREFIX)}"
    shared = ", shared" if gpu.gpu_resource == shares.SHARED else ""
    return f"{model}{shared}"
