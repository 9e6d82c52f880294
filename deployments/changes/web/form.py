"""The form of a new deployment: four steps on one address, nothing kept between requests.

Every field travels with every request, those of other steps hidden, so that going back and
forth, reloading and switching JavaScript off lose nothing that was typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django import forms

from deployments.domain import specs
from deployments.domain.states import Environment
from deployments.web import request_body
from deployments.web.deploy_fields import SettingsForm
from deployments.web.service_forms import ServiceForm

ENGINES = (
    (specs.KSERVE_TRITON, "KServe · Triton"),
    (specs.TRITON, "Triton"),
    (specs.KSERVE_VLLM, "KServe · vLLM"),
    (specs.TRITON_VLLM, "Triton · vLLM"),
    (specs.LLM_SERVICE, "KServe · LLM service"),
)
LOAD_FIELDS = ("requests_per_second",)
LLM_FIELDS = tuple(setting.field for setting in request_body.LLM)
SCALING_FIELDS = (
    "scaling",
    "metric",
    "target",
    "to_zero",
    "cooldown",
    "sqs_queue_url",
    "office_hours",
    *(setting.field for setting in request_body.OFFICE_HOURS),
)
BATCHING_FIELDS = (
    "dynamic_batching",
    "queue_delay",
    "batch_sizes",
    "instances",
    "warm_up",
    "precision",
)
PLACEMENT_FIELDS = ("capacity", "priority_class", "spread_zones")
ADVANCED_FIELDS = (
    "cpu",
    "memory",
    "model_cache",
    "shm_size",
    "service_account",
    "storage_secret",
    "network_policy",
    "strict_mtls",
    "service_monitor",
    "transformer_image",
    "explainer_image",
    *request_body.PACKED,
    "env",
)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    title: str
    fields: tuple[str, ...]


STEPS = (
    Step("model", "Model", ("version",)),
    Step(
        "serving",
        "Serving",
        ("cluster", "name", "environment", "engine", "share", *LOAD_FIELDS, *LLM_FIELDS),
    ),
    Step(
        "scaling",
        "Scaling",
        (
            "min_replicas",
            "max_replicas",
            *SCALING_FIELDS,
            *BATCHING_FIELDS,
            *PLACEMENT_FIELDS,
            *ADVANCED_FIELDS,
        ),
    ),
    Step("review", "Review", ("comment",)),
)
STEP_NAMES = tuple(step.name for step in STEPS)


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen here: (value, label) pairs. `packable`: labels of versions with a file."""

    versions: Sequence[tuple[str, str]]
    packable: Sequence[str]
    clusters: Sequence[tuple[str, str]]
    shares: Sequence[tuple[str, str]]


class DeployForm(SettingsForm, ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = request_body.RENAMED

    version = forms.ChoiceField(
        label="Version", error_messages={"required": "Choose the version to serve."}
    )
    cluster = forms.ChoiceField(label="Cluster", error_messages={"required": "Choose a cluster."})
    name = forms.CharField(
        label="Name", max_length=63, error_messages={"required": "Give the deployment a name."}
    )
    engine = forms.ChoiceField(label="Engine", choices=ENGINES, initial=specs.KSERVE_TRITON)
    share = forms.ChoiceField(
        label="GPU", error_messages={"required": "Choose what each replica gets."}
    )
    min_replicas = forms.IntegerField(
        label="Fewest replicas", initial=1, min_value=1, help_text="Always running, always paid."
    )
    max_replicas = forms.IntegerField(
        label="Most replicas",
        initial=1,
        min_value=1,
        help_text="The autoscaler stops here; quota counts these.",
    )
    cpu = forms.CharField(
        label="CPU", initial="2", max_length=10, help_text="Cores per replica: 2 or 1500m."
    )
    memory = forms.CharField(
        label="Memory", initial="8Gi", max_length=10, help_text="Per replica: 8Gi or 512Mi."
    )
    env = forms.CharField(
        label="Environment variables",
        required=False,
        max_length=4000,
        help_text="One NAME=value a line, for Triton and its backends. No secrets.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    environment = forms.ChoiceField(
        label="Environment",
        choices=[(one.value, one.value) for one in Environment],
        initial=Environment.PRODUCTION,
        help_text="Stays as it is: rules of approval differ by it.",
    )
    comment = forms.CharField(
        label="Comment for the approver",
        required=False,
        max_length=2000,
        help_text="What it is for, how you tried it, who depends on it.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, choices: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, offered in (
            ("version", choices.versions),
            ("cluster", choices.clusters),
            ("share", choices.shares),
        ):
            cast("forms.ChoiceField", self.fields[name]).choices = list(offered)
        others = _labels_beside(str(self.data.get("version", "")), choices)
        for name in request_body.PACKED:
            packable = [("", "none"), *((label, label) for label in others)]
            cast("forms.ChoiceField", self.fields[name]).choices = packable

    def clean_env(self) -> dict[str, str]:
        lines = [line.strip() for line in self.cleaned_data["env"].splitlines() if line.strip()]
        wrong = [line for line in lines if "=" not in line]
        if wrong:
            raise forms.ValidationError(f"{wrong[0]!r} has no '='; write NAME=value.")
        return {name.strip(): value for name, _, value in (line.partition("=") for line in lines)}

    def first_wrong_step(self) -> str:
        """Where the first field with an error is; the last step when there is none."""
        for step in STEPS:
            if any(name in self.errors for name in step.fields):
                return step.name
        return STEP_NAMES[-1]

    def spec(self) -> specs.ServingSpec:
        """Raises specs' Rejected; call it only when the fields are clean."""
        return specs.from_json(request_body.spec_of(self.data))


def _labels_beside(chosen: str, choices: Choices) -> list[str]:
    """Of the other models: Triton serves a model under its name, so one is served once."""
    labels = (label for value, label in choices.versions if value == chosen)
    own = next(labels, "").rpartition(":")[0]
    return [label for label in choices.packable if label.rpartition(":")[0] != own]


def is_back(*, at: str, wanted: str) -> bool:
    known = at in STEP_NAMES and wanted in STEP_NAMES
    return known and STEP_NAMES.index(wanted) < STEP_NAMES.index(at)


def step_to_show(form: DeployForm, *, at: str, wanted: str) -> str:
    """Going back is always allowed; going on stops at the first step that needs mending."""
    if at not in STEP_NAMES or wanted not in STEP_NAMES:
        return STEP_NAMES[0]
    if is_back(at=at, wanted=wanted):
        return wanted
    return min(wanted, form.first_wrong_step(), key=STEP_NAMES.index)
