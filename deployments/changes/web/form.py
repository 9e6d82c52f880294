"""The form of a new deployment: four steps on one address, nothing kept between requests.

Every field travels with every request, those of other steps hidden, so that going back and
forth, reloading and switching JavaScript off lose nothing that was typed.
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

ENGINES = tuple(request_body.DEFINITIONS["engine"].choices.items())


@dataclass(frozen=True, slots=True)
class FormStep:
    name: str
    title: str
    fields: tuple[str, ...]


STEPS = (
    FormStep("model", "Model", ("version",)),
    FormStep(
        "serving",
        "Serving",
        (
            "cluster",
            "name",
            "environment",
            "engine",
            *request_body.names_in("callers"),
            "share",
            "requests_per_second",
            *request_body.names_in("llm"),
        ),
    ),
    FormStep(
        "scaling",
        "Scaling",
        (
            "min_replicas",
            "max_replicas",
            *request_body.names_in("scaling"),
            *request_body.names_in("batching"),
            *request_body.names_in("triton"),
            *request_body.names_in("placement"),
            "cpu",
            "memory",
            *request_body.names_in("advanced"),
            *request_body.ADDITIONAL_MODELS,
            "env",
        ),
    ),
    FormStep("review", "Review", ("comment",)),
)
STEP_NAMES = tuple(step.name for step in STEPS)


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

    def clean_env(self) -> dict[str, str]:
        lines = [line.strip() for line in self.cleaned_data["env"].splitlines() if line.strip()]
        wrong = [line for line in lines if "=" not in line]
        if wrong:
            raise forms.ValidationError(f"“{wrong[0]}” has no '='. Write NAME=value.")
        return {name.strip(): value for name, _, value in (line.partition("=") for line in lines)}

    def first_wrong_step(self) -> str:
        """Return the step of the first field with an error. The last step if there is none."""
        for step in STEPS:
            if any(name in self.errors for name in step.fields):
                return step.name
        return STEP_NAMES[-1]

    def spec(self) -> serving_spec.ServingSpec:
        """Build the spec. Call it only when the fields are clean. Raises Rejected."""
        return ServingSpec.from_json(request_body.spec_of(self.data))


def is_back(*, at: str, target: str) -> bool:
    is_known = at in STEP_NAMES and target in STEP_NAMES
    return is_known and STEP_NAMES.index(target) < STEP_NAMES.index(at)


def step_to_show(form: DeployForm, *, at: str, target: str) -> str:
    """Return the step to show. Going back is always allowed; going on stops at the first step with an error."""
    if at not in STEP_NAMES or target not in STEP_NAMES:
        return STEP_NAMES[0]
    if is_back(at=at, target=target):
        return target
    return min(target, form.first_wrong_step(), key=STEP_NAMES.index)
