"""Summarise a folded section: the values of its settings in words, and how many have their default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.draft import Draft
from deployments.changes.web.form import ENGINES, DeployForm, FormSection
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.scaling import FIXED
from fleet.gpus.domain import neuron, shares
from fleet.gpus.domain.offers import GpuShare
from portal.ui.definition_fields import ON

_LONGEST: Final = 60
# What the words of a section say already.
_SAID: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu": ("cluster", "share"),
    "scaling": ("min_replicas", "max_replicas", "scaling_kind", "scaling_can_scale_to_zero"),
    "engine": ("engine",),
    "batching": (
        "batching_is_dynamic",
        "batching_max_queue_delay_us",
        "instances_per_gpu",
        "warm_up",
        "triton_sequence",
        "triton_queue_priority_levels",
        "triton_response_cache_mib",
        "triton_decoupled",
    ),
    "placement": request_body.names_in("placement"),
    "models": request_body.ADDITIONAL_MODELS,
    "resources": ("cpu", "memory", "env"),
}


def summarize(section: FormSection, draft: Draft) -> str:
    """Describe the values of a section: its main ones, those that differ from their default, and how many do not."""
    said = _SAID[section.name]
    others = [name for name in section.fields if name not in said and _applies(name, draft.data)]
    changed = [name for name in others if _is_changed(name, draft.data)]
    parts = [_WORDS[section.name](draft)]
    parts += [describe_value(draft.form, name, draft.data) for name in changed]
    if count := len(others) - len(changed):
        parts.append(f"{count} setting{'s at their defaults' if count > 1 else ' at its default'}")
    return " · ".join(part for part in parts if part)


def describe_value(form: DeployForm, name: str, data: Mapping[str, str]) -> str:
    """Name a setting and its value: "Model cache node disk"."""
    field, value = form.fields[name], data.get(name, "").strip()
    if isinstance(field, forms.ChoiceField):
        offered = cast("Iterable[tuple[str, str]]", field.choices)
        value = {str(key): str(text) for key, text in offered}.get(value, value)
    unit = str(field.widget.attrs.get("data-unit", ""))
    text = f"{field.label} {value} {unit}".strip() if value else f"no {field.label}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def describe_gpu(draft: Draft) -> str:
    cluster = draft.cluster
    if cluster is None:
        return "no cluster is connected"
    if draft.version is None:
        return f"on {cluster.name} · chosen with the version"
    if draft.share is None:
        return f"no GPU chosen on {cluster.name}"
    chosen = " · chosen for you" if draft.is_share_suggested else ""
    return f"{describe_share(draft.share)} on {cluster.name}{chosen}"


def describe_share(share: GpuShare) -> str:
    if share.gpu_resource == neuron.DEVICE:
        return f"{shares.format_count(share.gpus, share.gpu_resource)} of {share.instance_type}"
    name = share.gpu_name.removeprefix("NVIDIA-").removeprefix("Tesla-")
    profile = share.gpu_resource.removeprefix("nvidia.com/mig-")
    part = f", slice {profile}" if profile != share.gpu_resource else ""
    return f"{share.gpus} \N{MULTIPLICATION SIGN} {name}{part} ({share.instance_type})"


def describe_scaling(draft: Draft) -> str:
    data = draft.data
    low, high = data.get("min_replicas", ""), data.get("max_replicas", "")
    kind = data.get("scaling_kind", "")
    is_fixed = kind == FIXED or (not kind and low == high)
    kinds = request_body.DEFINITIONS["scaling.kind"].choices
    replicas = f"{high} replica{'' if high == '1' else 's'}"
    if is_fixed:
        text = f"fixed at {low} replica{'' if low == '1' else 's'}"
    else:
        text = f"{kinds.get(kind, kind) if kind else 'automatic'}, {low} to {replicas}"
    zero = ", down to zero" if data.get("scaling_can_scale_to_zero") == ON else ""
    return f"{text}{zero}"


def describe_engine(draft: Draft) -> str:
    engine = draft.data.get("engine", "")
    return dict(ENGINES).get(engine, engine)


def describe_batching(draft: Draft) -> str:
    data = draft.data
    if data.get("engine") in LLM_ENGINES:
        return "the server batches automatically"
    batching = "dynamic batches" if data.get("batching_is_dynamic") == ON else "no batching"
    delay = data.get("batching_max_queue_delay_us", "0")
    parts = [batching]
    if delay not in ("", "0"):
        parts.append(f"waits {delay} µs")
    count = data.get("instances_per_gpu", "1")
    parts.append(f"{count} instance{'' if count == '1' else 's'} per GPU")
    if data.get("warm_up") == ON:
        parts.append("warmed up")
    parts += [
        text
        for name, text in (
            ("triton_sequence", "sequence batching"),
            ("triton_queue_priority_levels", "priorities"),
            ("triton_response_cache_mib", "response cache"),
            ("triton_decoupled", "decoupled"),
        )
        if data.get(name, "") not in ("", "off")
    ]
    return ", ".join(parts)


def describe_placement(draft: Draft) -> str:
    return catalogue.describe(request_body.placement_of(draft.data))


def describe_models(draft: Draft) -> str:
    labels = [draft.data[name] for name in request_body.ADDITIONAL_MODELS if draft.data.get(name)]
    return f"with {', '.join(labels)}" if labels else "one model per Triton"


def describe_resources(draft: Draft) -> str:
    data = draft.data
    count = len([line for line in data.get("env", "").splitlines() if line.strip()])
    variables = f", {count} environment variable{'' if count == 1 else 's'}" if count else ""
    return f"{data.get('cpu', '')} CPU, {data.get('memory', '')} memory{variables}"


_WORDS: Final[Mapping[str, Callable[[Draft], str]]] = {
    "gpu": describe_gpu,
    "scaling": describe_scaling,
    "engine": describe_engine,
    "batching": describe_batching,
    "placement": describe_placement,
    "models": describe_models,
    "resources": describe_resources,
}


def _applies(name: str, data: Mapping[str, str]) -> bool:
    """Whether the setting is in the request: its part is on, and the engine has such settings at all."""
    setting = request_body.SETTINGS.get(name)
    if setting is None:
        return True
    if setting.group in ("batching", "triton") and data.get("engine") in LLM_ENGINES:
        return False
    return request_body.applies(setting, data)


def _is_changed(name: str, data: Mapping[str, str]) -> bool:
    return data.get(name, "").strip() != request_body.DEFAULTS.get(name, "")
