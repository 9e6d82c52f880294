"""The settings that may be left alone, as the page shows them: value, and why one is off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.forms import BoundField

from deployments.changes.web import request_body
from deployments.changes.web.fields import METRICS, SCALING, SCALING_DETAILS
from deployments.changes.web.form import (
    BATCHING_FIELDS,
    ENGINES,
    PLACEMENT_FIELDS,
    SCALING_FIELDS,
    DeployForm,
)
from deployments.changes.web.request_body import ON
from deployments.models import ModelVersion
from deployments.registry.domain import external_weights
from deployments.spec.domain import cluster_support
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.scaling import DEFAULT_TARGETS, FIXED
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.clusters.selectors.clusters import ClusterInfo

_ENGINE_DETAILS = {
    "kserve-triton": "autoscaling, canary by the route",
    "triton": "plain Deployment, full control",
    "kserve-vllm": "language models, by KServe",
    "triton-vllm": "language models, plain Deployment",
    "llm-inference-service": "language models over several nodes",
}
_PATHS = {setting.field: setting.path for setting in request_body.SETTINGS}
# Settings whose reason is told for a whole group of the spec.
_GROUPS = {
    "office_hours": "scaling.office_hours",
    "dynamic_batching": "batching",
    "queue_delay": "batching",
    "batch_sizes": "batching",
    "transformer_image": "components",
    "explainer_image": "components",
    **dict.fromkeys(request_body.PACKED, "packed"),
}


_OF_AN_AUTOSCALER = ("scaling.metric", "scaling.target", "scaling.cooldown_seconds")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    name: str
    title: str
    detail: str
    # Why it is not offered; empty when it is.
    reason: str


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str
    detail: str
    reason: str
    is_chosen: bool

    @property
    def is_off(self) -> bool:
        """What was chosen before it went off is still sent, so that it is refused in words."""
        return bool(self.reason) and not self.is_chosen


@dataclass(frozen=True, slots=True)
class SettingView:
    field: BoundField
    value: str
    reason: str
    is_usual: bool
    options: Sequence[Option] = ()

    @property
    def unit(self) -> str:
        return str(self.field.field.widget.attrs.get("data-unit", ""))

    @property
    def is_on(self) -> bool:
        return self.value == ON

    @property
    def is_off(self) -> bool:
        return bool(self.reason) and self.is_usual

    @property
    def off_words(self) -> Sequence[str]:
        """Why options of it are off, each reason once."""
        return [f"{option.label}: {option.reason}" for option in self.options if option.reason]


@dataclass(frozen=True, slots=True)
class Group:
    """What the closed group says; open when something in it differs from the default."""

    summary: str
    is_open: bool


def engine_choices(
    cluster: ClusterInfo | None, version: ModelVersion | None = None
) -> list[EngineChoice]:
    offered = _offered(cluster)
    source = "" if version is None else version.source_uri
    choices = []
    for engine, title in ENGINES:
        reason = cluster_support.engine_reason(engine, offered)
        if source and engine not in external_weights.parse(source).engines:
            reason = f"it cannot load {source.partition('://')[0]}:// references."
        words = f"off: {reason}" if reason else ""
        choices.append(EngineChoice(engine, title, _ENGINE_DETAILS[engine], words))
    return choices


def settings_of(
    form: DeployForm, data: Mapping[str, str], cluster: ClusterInfo | None
) -> dict[str, SettingView]:
    """By field name, every setting with its reason when it is off."""
    engine, kind = data.get("engine", ""), data.get("scaling", "")
    known = [name for name, _ in ENGINES]
    reasons = cluster_support.reasons(
        engine if engine in known else known[0], kind, _offered(cluster)
    )
    if kind in ("", FIXED):
        reasons |= dict.fromkeys(_OF_AN_AUTOSCALER, "choose an autoscaler first.")
    fields = [*request_body.DEFAULTS, "requests_per_second"]
    return {name: _view(form, name, data, reasons) for name in fields if name in form.fields}


def groups_of(settings: Mapping[str, SettingView], data: Mapping[str, str]) -> dict[str, Group]:
    found = {
        "scaling": Group(_scaling_words(data), _is_open(SCALING_FIELDS, settings)),
        "batching": Group(_batching_words(data), _is_open(BATCHING_FIELDS, settings)),
        "placement": Group(_placement_words(data), _is_open(PLACEMENT_FIELDS, settings)),
    }
    found["packing"] = Group(_packing_words(data), _is_open(request_body.PACKED, settings))
    more = [name for name in settings if name in _ADVANCED]
    return found | {"advanced": Group(_advanced_words(data), _is_open(more, settings))}


_ADVANCED = (
    "cpu",
    "memory",
    "model_cache",
    "shm_size",
    "service_account",
    "storage_secret",
    "strict_mtls",
    "service_monitor",
    "summary_latencies",
    "transformer_image",
    "explainer_image",
)


def what_it_has(cluster: ClusterInfo | None) -> str:
    """What the cluster brings along, in a line; what it lacks is told where it would be used."""
    offered = _offered(cluster)
    there = [
        f"{description.title} {offered.feature(name).version}".strip()
        for name, description in FEATURE_DESCRIPTIONS.items()
        if offered.feature(name).is_there
    ]
    return ", ".join(there)


def usual_target(data: Mapping[str, str]) -> str:
    """What an empty target stands for, in words."""
    kind, metric = data.get("scaling", ""), data.get("metric", "")
    usual = DEFAULT_TARGETS.get((kind, metric))
    if usual is None:
        return ""
    return f"Empty: {usual} {METRICS[metric][1]}."


def _view(
    form: DeployForm, name: str, data: Mapping[str, str], reasons: Mapping[str, str]
) -> SettingView:
    value = data.get(name, request_body.DEFAULTS.get(name, ""))
    path = _GROUPS.get(name) or _PATHS.get(name, name)
    options = _options(form, name, value, path, reasons, data)
    is_usual = value == request_body.DEFAULTS.get(name, "")
    return SettingView(form[name], value, reasons.get(path, ""), is_usual, options)


def _options(
    form: DeployForm,
    name: str,
    value: str,
    path: str,
    reasons: Mapping[str, str],
    data: Mapping[str, str],
) -> list[Option]:
    choices = (
        dict(SCALING) if name == "scaling" else dict(getattr(form.fields[name], "choices", ()))
    )
    if name == "metric":
        kind = data.get("scaling", "")
        usable = {metric for one, metric in DEFAULT_TARGETS if one == kind} | {""}
        choices = {key: label for key, label in choices.items() if key in usable}
    return [
        Option(
            value=str(key),
            label=str(label),
            detail=_detail(str(key), reasons) if name == "scaling" else "",
            reason=reasons.get(f"{path}={key}", "") if key else "",
            is_chosen=str(key) == value,
        )
        for key, label in choices.items()
    ]


def _detail(kind: str, reasons: Mapping[str, str]) -> str:
    without_keda = reasons.get("scaling.kind=keda", "")
    if not kind and without_keda and "scaling.kind=knative" in reasons:
        return f"fixed at min replicas here. {without_keda}"
    return SCALING_DETAILS.get(kind, "")


def _is_open(names: Sequence[str], settings: Mapping[str, SettingView]) -> bool:
    views = [settings[name] for name in names if name in settings]
    return any(not view.is_usual or view.field.errors for view in views)


def _scaling_words(data: Mapping[str, str]) -> str:
    kind = data.get("scaling", "")
    fewest, most = data.get("min_replicas", ""), data.get("max_replicas", "")
    words = dict(SCALING).get(kind, "") if kind else "automatic" if fewest != most else "fixed"
    zero = ", down to zero" if data.get("to_zero") == ON else ""
    hours = ", office hours" if data.get("office_hours") == ON else ""
    return f"{words}{zero}{hours}"


def _batching_words(data: Mapping[str, str]) -> str:
    if data.get("engine") in LLM_ENGINES:
        return "vLLM batches automatically"
    batching = "dynamic" if data.get("dynamic_batching") == ON else "none"
    delay = data.get("queue_delay", "0")
    waits = f", waits {delay} µs" if delay not in ("", "0") else ""
    count = data.get("instances", "1")
    warm = ", warmed up" if data.get("warm_up") == ON else ""
    return f"{batching}{waits} · {count} per GPU{warm}"


def _placement_words(data: Mapping[str, str]) -> str:
    zones = ", spread across zones" if data.get("spread_zones") == ON else ""
    return f"{data.get('capacity', '')}{zones}"


def _packing_words(data: Mapping[str, str]) -> str:
    labels = [data[name] for name in request_body.PACKED if data.get(name)]
    return f"with {', '.join(labels)}" if labels else "none: one model per Triton"


def _advanced_words(data: Mapping[str, str]) -> str:
    return f"{data.get('cpu', '')} CPU, {data.get('memory', '')} memory, network, cache"


def _offered(cluster: ClusterInfo | None) -> Capabilities:
    return Capabilities.from_json(cluster.capabilities if cluster else {})
