"""What was chosen, in words, before it is requested; each part leads back to its step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.draft import Draft
from deployments.changes.web.form import STEPS, DeployForm, Step
from deployments.preflight.domain.checks import Preflight

# Always said; of the others only what is not as it is by default.
_ALWAYS = frozenset(
    {
        "version",
        "cluster",
        "name",
        "environment",
        "engine",
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
class Choice:
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class ChosenStep:
    step: Step
    choices: Sequence[Choice]
    # How many settings stay at their defaults.
    left_count: int


@dataclass(frozen=True, slots=True)
class Refusals:
    """How many checks forbid the request, and how many only warn."""

    failing: int
    warnings: int


def steps_of(draft: Draft) -> list[ChosenStep]:
    return [_chosen(draft, step) for step in STEPS[:-1]]


def refusals_of(checked: Preflight | None) -> Refusals:
    checks = checked.checks if checked else ()
    return Refusals(
        failing=sum(one.is_refusal for one in checks),
        warnings=sum(one.ok is False and not one.is_refusal for one in checks),
    )


def _chosen(draft: Draft, step: Step) -> ChosenStep:
    fields = [name for name in step.fields if _applies(name, draft.data)]
    said = [name for name in fields if name in _ALWAYS or _is_changed(name, draft.data)]
    choices = [Choice(_label(draft.form, name), _words(draft, name)) for name in said]
    return ChosenStep(step, choices, len(fields) - len(said))


def _applies(name: str, data: Mapping[str, str]) -> bool:
    setting = request_body.SETTINGS.get(name)
    return setting is None or request_body.applies(setting, data)


def _is_changed(name: str, data: Mapping[str, str]) -> bool:
    value = data.get(name, "")
    return bool(value) and value != request_body.DEFAULTS.get(name, "")


def _label(form: DeployForm, name: str) -> str:
    return str(form.fields[name].label or name)


def _words(draft: Draft, name: str) -> str:
    value = draft.data.get(name, "").strip()
    if name == "share" and draft.share is not None:
        share = draft.share
        return f"{share.gpus} GPU{'' if share.gpus == 1 else 's'} of {share.instance_type}"
    field = draft.form.fields[name]
    if isinstance(field, forms.ChoiceField):
        offered = cast("Iterable[tuple[str, str]]", field.choices)
        chosen = {str(key): str(text) for key, text in offered}
        value = chosen.get(value, value)
    unit = str(field.widget.attrs.get("data-unit", ""))
    text = f"{value} {unit}".strip() if value else "not set"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
