"""The summary of a request before it is sent; each part links back to its step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.draft import Draft
from deployments.changes.web.form import STEPS, DeployForm, FormStep
from deployments.preflight.domain.checks import Preflight
from fleet.gpus.domain import neuron, shares

# Always shown; other settings only when they differ from their default.
_ALWAYS = frozenset(
    {
        "version",
        "cluster",
        "name",
        "environment",
        "engine",
        "network_access",
        "share",
        "min_replicas",
        "max_replicas",
        "scaling_kind",
        "cpu",
        "memory",
    }
)
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class DecisionChoice:
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class ChosenStep:
    step: FormStep
    choices: Sequence[DecisionChoice]
    # How many settings have their default.
    default_count: int


@dataclass(frozen=True, slots=True)
class Refusals:
    """The counts of checks that forbid the request, and of those that only warn."""

    failing: int
    warnings: int


def steps_of(draft: Draft) -> list[ChosenStep]:
    return [_chosen(draft, step) for step in STEPS[:-1]]


def refusals_of(checked: Preflight | None) -> Refusals:
    checks = checked.checks if checked else ()
    return Refusals(
        failing=sum(check.is_refusal for check in checks),
        warnings=sum(check.ok is False and not check.is_refusal for check in checks),
    )


def _chosen(draft: Draft, step: FormStep) -> ChosenStep:
    fields = [name for name in step.fields if _applies(name, draft.data)]
    shown = [name for name in fields if name in _ALWAYS or _is_changed(name, draft.data)]
    choices = [DecisionChoice(_label(draft.form, name), _describe(draft, name)) for name in shown]
    return ChosenStep(step, choices, len(fields) - len(shown))


def _applies(name: str, data: Mapping[str, str]) -> bool:
    setting = request_body.SETTINGS.get(name)
    return setting is None or request_body.applies(setting, data)


def _is_changed(name: str, data: Mapping[str, str]) -> bool:
    value = data.get(name, "")
    return bool(value) and value != request_body.DEFAULTS.get(name, "")


def _label(form: DeployForm, name: str) -> str:
    return str(form.fields[name].label or name)


def _describe(draft: Draft, name: str) -> str:
    value = draft.data.get(name, "").strip()
    if name == "share" and draft.share is not None:
        share = draft.share
        resource = share.gpu_resource if share.gpu_resource == neuron.DEVICE else shares.WHOLE
        return f"{shares.format_count(share.gpus, resource)} of {share.instance_type}"
    field = draft.form.fields[name]
    if isinstance(field, forms.ChoiceField):
        offered = cast("Iterable[tuple[str, str]]", field.choices)
        chosen = {str(key): str(text) for key, text in offered}
        value = chosen.get(value, value)
    unit = str(field.widget.attrs.get("data-unit", ""))
    text = f"{value} {unit}".strip() if value else "not set"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
