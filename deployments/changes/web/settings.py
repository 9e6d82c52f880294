"""The settings that may be left alone, as the page shows them: value, and why one is off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.forms import BoundField

from deployments.changes.web import request_body
from deployments.changes.web.form import DeployForm
from deployments.spec.domain import cluster_support
from deployments.spec.domain.engines import ENGINES as ENGINE_NAMES
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.scaling import (
    DEFAULT_TARGETS,
    DURATIONS,
    FIXED,
    HPA,
    KEDA,
    KNATIVE,
    LANGUAGE_METRICS,
    PERCENTAGES,
)
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.ui import definition_fields
from portal.ui.definition_fields import ON

_SCALING_DETAILS = {
    "": "by queue or requests in flight where the cluster has these metrics, otherwise fixed",
    FIXED: "always the minimum",
    HPA: "CPU, memory, or the queue by an adapter",
    KEDA: "queue, latency, GPU, job queues, office hours; scales to zero",
    KNATIVE: "requests in flight; queues them during a cold start",
}
_TARGET_UNITS = {**dict.fromkeys(DURATIONS, "ms"), **dict.fromkeys(PERCENTAGES, "%")}
_OF_AN_AUTOSCALER = ("scaling.metric", "scaling.target", "scaling.cooldown_seconds")


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str
    detail: str
    reason: str
    is_chosen: bool

    @property
    def is_off(self) -> bool:
        """Whether the option cannot be chosen. A choice that went off later is still sent, so that it is refused
        with its reason.
        """
        return bool(self.reason) and not self.is_chosen


@dataclass(frozen=True, slots=True)
class SettingView:
    field: BoundField
    value: str
    reason: str
    is_default: bool
    is_switch: bool = False
    options: Sequence[Option] = ()
    # Values that may be typed, and a sentence about them.
    suggestions: Sequence[str] = ()
    note: str = ""

    @property
    def is_searched(self) -> bool:
        """Whether the setting has too many choices to list, so that it is typed with suggestions."""
        return self.field.name in request_body.ADDITIONAL_MODELS

    @property
    def unit(self) -> str:
        return str(self.field.field.widget.attrs.get("data-unit", ""))

    @property
    def is_on(self) -> bool:
        return self.value == ON

    @property
    def is_off(self) -> bool:
        return bool(self.reason) and self.is_default

    @property
    def option_reasons(self) -> Sequence[str]:
        return [f"{option.label}: {option.reason}" for option in self.options if option.reason]


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """A group of settings. It is open if a setting differs from its default."""

    settings: Sequence[SettingView] = field(repr=False)
    label: str = ""
    name: str = ""

    @property
    def is_open(self) -> bool:
        return any(not view.is_default or view.field.errors for view in self.settings)

    @property
    def inputs(self) -> Sequence[SettingView]:
        return [view for view in self.settings if not view.is_switch]

    @property
    def switches(self) -> Sequence[SettingView]:
        return [view for view in self.settings if view.is_switch]


@dataclass(frozen=True, slots=True)
class SettingPart:
    """A part of the settings, which shows while its switch is on."""

    switch: SettingView
    settings: Sequence[SettingView] = field(repr=False)

    @property
    def label(self) -> str:
        return str(self.switch.field.label)


def settings_of(
    form: DeployForm, data: Mapping[str, str], cluster: ClusterInfo | None
) -> dict[str, SettingView]:
    """Return the settings by field name, each with its reason if it is off."""
    engine, kind = data.get("engine", ""), data.get("scaling_kind", "")
    reasons = cluster_support.reasons(
        engine if engine in ENGINE_NAMES else ENGINE_NAMES[0], kind, _capabilities(cluster)
    )
    if kind in ("", FIXED):
        reasons |= dict.fromkeys(_OF_AN_AUTOSCALER, "choose an autoscaler first.")
    names = [*request_body.SETTINGS, *request_body.ADDITIONAL_MODELS, "requests_per_second"]
    return {name: _view(form, name, data, reasons) for name in names}


def groups_of(settings: Mapping[str, SettingView]) -> dict[str, SettingGroup]:
    """Return the settings by the `group` of their definition. A new setting appears without a change here."""
    scaling = [
        name
        for name in request_body.names_in("scaling")
        if name != "scaling_kind" and not request_body.SETTINGS[name].switch
    ]
    groups = ("batching", "triton", "placement", "advanced", "callers", "llm")
    members = {
        "scaling": scaling,
        "multi_model": request_body.ADDITIONAL_MODELS,
        **{group: request_body.names_in(group) for group in groups},
    }
    return {
        group: SettingGroup([settings[name] for name in names]) for group, names in members.items()
    }


def triton_sections(settings: Mapping[str, SettingView]) -> list[SettingGroup]:
    """Return the settings of config.pbtxt: batching first, then the parts of `triton`, then its own fields."""
    sections = {"batching": list(request_body.names_in("batching")), "rest": []}
    labels = {"batching": "Batching", "rest": "Cache, versions and parameters"}
    for name in request_body.names_in("triton"):
        path = request_body.SETTINGS[name].path
        part = ".".join(path.split(".")[:2])
        definition = request_body.DEFINITIONS[part]
        key = part.replace(".", "_") if definition.model is not None else "rest"
        sections.setdefault(key, []).append(name)
        labels.setdefault(key, definition.label)
    ordered = [*(key for key in sections if key != "rest"), "rest"]
    return [
        SettingGroup([settings[name] for name in sections[key]], labels[key], key)
        for key in ordered
    ]


def parts_of(settings: Mapping[str, SettingView], group: str) -> list[SettingPart]:
    """Return the parts of a group that are switched on and off as a whole."""
    members: dict[str, list[SettingView]] = {}
    for name in request_body.names_in(group):
        if switch := request_body.SETTINGS[name].switch:
            members.setdefault(switch, []).append(settings[name])
    return [SettingPart(settings[switch], views) for switch, views in members.items()]


def describe_cluster(cluster: ClusterInfo | None) -> str:
    """Describe the features that the cluster has, in a line. A missing one shows where it would be used."""
    capabilities = _capabilities(cluster)
    features = [
        f"{feature.title} {capabilities.feature(name).version}".strip()
        for name, feature in FEATURE_DESCRIPTIONS.items()
        if capabilities.feature(name).is_there
    ]
    return ", ".join(features)


def default_target(data: Mapping[str, str]) -> str:
    """Return the default for an empty target, as a hint."""
    metric = data.get("scaling_metric", "")
    target = DEFAULT_TARGETS.get((data.get("scaling_kind", ""), metric))
    if target is None:
        return ""
    return f"Default: {target} {_TARGET_UNITS.get(metric, 'per replica')}."


def _view(
    form: DeployForm, name: str, data: Mapping[str, str], reasons: Mapping[str, str]
) -> SettingView:
    setting = request_body.SETTINGS.get(name)
    default = request_body.DEFAULTS.get(name, "")
    path = (
        setting.path
        if setting
        else "additional_models"
        if name in request_body.ADDITIONAL_MODELS
        else name
    )
    value = data.get(name, default)
    return SettingView(
        field=form[name],
        value=value,
        reason=_reason(path, reasons),
        is_default=value == default,
        is_switch=setting is not None and definition_fields.is_switch(setting.definition),
        options=_options(form, name, path, value, reasons, data),
    )


def _reason(path: str, reasons: Mapping[str, str]) -> str:
    """Return the reason of the setting, or of the part that it belongs to."""
    while path not in reasons and "." in path:
        path = path.rpartition(".")[0]
    return reasons.get(path, "")


def _options(
    form: DeployForm,
    name: str,
    path: str,
    value: str,
    reasons: Mapping[str, str],
    data: Mapping[str, str],
) -> list[Option]:
    choices = dict(getattr(form.fields[name], "choices", ()))
    if name == "scaling_metric":
        kind = data.get("scaling_kind", "")
        usable = {metric for watcher, metric in DEFAULT_TARGETS if watcher == kind} | {""}
        if data.get("engine") not in LLM_ENGINES:
            usable -= set(LANGUAGE_METRICS)
        choices = {key: label for key, label in choices.items() if key in usable}
    return [
        Option(
            value=str(key),
            label=str(label),
            detail=_scaling_detail(str(key), reasons) if name == "scaling_kind" else "",
            reason=reasons.get(f"{path}={key}", "") if key else "",
            is_chosen=str(key) == value,
        )
        for key, label in choices.items()
    ]


def _scaling_detail(kind: str, reasons: Mapping[str, str]) -> str:
    without_keda = reasons.get("scaling.kind=keda", "")
    if not kind and without_keda and "scaling.kind=knative" in reasons:
        return f"fixed at min replicas here. {without_keda}"
    return _SCALING_DETAILS.get(kind, "")


def _capabilities(cluster: ClusterInfo | None) -> Capabilities:
    return cluster.capabilities if cluster else Capabilities()
