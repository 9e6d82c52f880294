"""The form of a new deployment: one page with five open fields.

Every other setting is in a section that is folded and says its values. All of them travel with every request, so
that reloading and switching JavaScript off lose nothing that was typed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.fields import SettingsForm, required_field
from deployments.spec.domain import kubernetes_names, serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import Environment
from portal.ui.service_form import ServiceForm

# As many as the sizing reads.
_MOST_DIGITS = 9
ENGINES = tuple(request_body.DEFINITIONS["engine"].choices.items())


@dataclass(frozen=True, slots=True)
class FormSection:
    """A folded section with its fields."""

    name: str
    title: str
    fields: tuple[str, ...]


# What a person decides. Everything else has a suggestion or a default.
OPEN_FIELDS = ("version", "name", "environment", "requests_per_second", "network_access")
SECTIONS = (
    FormSection("gpu", "GPU and cluster", ("cluster", "share")),
    FormSection(
        "scaling",
        "Scaling",
        ("min_replicas", "max_replicas", *request_body.names_in("scaling")),
    ),
    FormSection("engine", "Engine", ("engine", *request_body.names_in("llm"))),
    FormSection(
        "batching",
        "Batching and Triton",
        (*request_body.names_in("batching"), *request_body.names_in("triton")),
    ),
    FormSection("placement", "Placement", request_body.names_in("placement")),
    FormSection("models", "Multi-model serving", request_body.ADDITIONAL_MODELS),
    FormSection(
        "resources",
        "Resources and network",
        (
            "cpu",
            "memory",
            *(name for name in request_body.names_in("callers") if name not in OPEN_FIELDS),
            *request_body.names_in("advanced"),
            "env",
        ),
    ),
)
FIELDS = (*OPEN_FIELDS, *(name for section in SECTIONS for name in section.fields), "comment")


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a form as (value, label) pairs.

    Of versions it has only the chosen one, and of additional models those chosen that can be served beside it: all
    that there are would not fit on the page.
    """

    versions: Sequence[tuple[str, str]]
    addable: Sequence[str]
    clusters: Sequence[tuple[str, str]]
    shares: Sequence[tuple[str, str]]
    # The name must be valid and unused in this namespace.
    namespace: str = ""
    taken_names: Collection[str] = ()


class DeployForm(SettingsForm, ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = request_body.RENAMED

    version = forms.ChoiceField(
        label="Version", error_messages={"required": "Choose the version to serve."}
    )
    cluster = forms.ChoiceField(label="Cluster", error_messages={"required": "Choose a cluster."})
    name = forms.CharField(
        label="Name", max_length=63, error_messages={"required": "Enter a name for the deployment."}
    )
    engine = forms.ChoiceField(label="Engine", choices=ENGINES, initial=serving_spec.KSERVE_TRITON)
    share = forms.ChoiceField(
        label="GPU",
        error_messages={
            "required": "Choose a GPU for each replica.",
            "invalid_choice": "The chosen GPU is no longer offered in this way. Choose one from the list.",
        },
    )
    min_replicas = required_field("min_replicas")
    max_replicas = required_field("max_replicas")
    cpu = required_field("cpu")
    memory = required_field("memory")
    env = forms.CharField(
        label=request_body.DEFINITIONS["env"].label,
        required=False,
        max_length=4000,
        help_text=f"One NAME=value per line. {request_body.DEFINITIONS['env'].help}",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    environment = forms.ChoiceField(
        label="Environment",
        choices=[(environment.value, environment.value) for environment in Environment],
        initial=Environment.PRODUCTION,
        help_text="Can't be changed later; sets the approval rules.",
    )
    comment = forms.CharField(
        label="Comment for the approver",
        required=False,
        max_length=2000,
        help_text="Purpose, how you tested it and who depends on it.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, choices: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, values in (
            ("version", choices.versions),
            ("cluster", choices.clusters),
            ("share", choices.shares),
        ):
            cast("forms.ChoiceField", self.fields[name]).choices = list(values)
        self._namespace, self._taken_names = choices.namespace, choices.taken_names
        addable = [("", "none"), *((label, label) for label in choices.addable)]
        for name in request_body.ADDITIONAL_MODELS:
            cast("forms.ChoiceField", self.fields[name]).choices = addable

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        problem = kubernetes_names.problem_with(name, namespace=self._namespace)
        if problem:
            raise forms.ValidationError(problem)
        if name in self._taken_names:
            free = kubernetes_names.suggest(
                name, namespace=self._namespace, taken=self._taken_names
            )
            raise forms.ValidationError(
                f"{self._namespace}/{name} already exists on this cluster. Choose another name, for "
                f"example '{free}', or request a canary on that deployment."
            )
        return name

    def clean_requests_per_second(self) -> str:
        text: str = self.cleaned_data["requests_per_second"].strip()
        if text and (not text.isdecimal() or len(text) > _MOST_DIGITS):
            raise forms.ValidationError("Enter a whole number, for example 50.")
        return text

    def clean_env(self) -> dict[str, str]:
        lines = [line.strip() for line in self.cleaned_data["env"].splitlines() if line.strip()]
        wrong = [line for line in lines if "=" not in line]
        if wrong:
            raise forms.ValidationError(f"“{wrong[0]}” has no '='. Write NAME=value.")
        return {name.strip(): value for name, _, value in (line.partition("=") for line in lines)}

    def spec(self) -> serving_spec.ServingSpec:
        """Build the spec. Call it only when the fields are clean. Raises Rejected."""
        return ServingSpec.from_json(request_body.spec_of(self.data))
