"""The form's texts as the body of POST /api/v1/deployments, and back.

One table says where each field stands in the serving spec; the page, the YAML and the scripts all
go by it. What is left at its default is left out, so that a copied request says what was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.spec.domain.engines import LLM_ENGINES
from deployments.states import Environment

ON: Final = "on"
OFF: Final = "off"


class Unreadable(Exception):
    """The body has a field that no request has; the message says which, and the fix."""


# The largest number of any field has fewer; int() itself fails on thousands of digits.
_MOST_DIGITS: Final = 18


def _number(text: str) -> int | str:
    """What is no number stays as typed, so that the spec refuses it at its field."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else text


def _numbers(text: str) -> list[int | str]:
    return [_number(part.strip()) for part in text.split(",") if part.strip()]


def _ratio(text: str) -> float | str:
    number = _number(text)
    return number / 100 if isinstance(number, int) else number


def _switch(text: str) -> bool:
    return text == ON


def _as_switch(value: Any) -> str:
    """What is neither stays as written, so that the form refuses it at its field."""
    return str(value) if value not in (True, False) else ON if value else OFF


def _as_list(value: Any) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _as_percent(value: Any) -> str:
    is_ratio = isinstance(value, int | float) and abs(value) <= 1
    return str(round(value * 100)) if is_ratio else str(value)


@dataclass(frozen=True, slots=True)
class Kind:
    read: Callable[[str], Any]
    write: Callable[[Any], str]


TEXT: Final = Kind(str, str)
NUMBER: Final = Kind(_number, str)
NUMBERS: Final = Kind(_numbers, _as_list)
GROUPED: Final = Kind(lambda text: _number(text.replace(",", "")), str)
PERCENT: Final = Kind(_ratio, _as_percent)
SWITCH: Final = Kind(_switch, _as_switch)


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of the form, where it stands in the spec, and what it is when nobody touched it."""

    field: str
    path: str
    kind: Kind
    default: str = ""


SETTINGS: Final = (
    Setting("scaling", "scaling.kind", TEXT),
    Setting("metric", "scaling.metric", TEXT),
    Setting("target", "scaling.target", NUMBER),
    Setting("to_zero", "scaling.can_scale_to_zero", SWITCH, OFF),
    Setting("cooldown", "scaling.cooldown_seconds", NUMBER, "300"),
    Setting("sqs_queue_url", "scaling.sqs_queue_url", TEXT),
    Setting("dynamic_batching", "batching.is_dynamic", SWITCH, ON),
    Setting("queue_delay", "batching.max_queue_delay_us", NUMBER, "0"),
    Setting("batch_sizes", "batching.preferred_batch_sizes", NUMBERS),
    Setting("instances", "instances_per_gpu", NUMBER, "1"),
    Setting("warm_up", "warm_up", SWITCH, OFF),
    Setting("precision", "precision", TEXT, "original"),
    Setting("capacity", "placement.capacity", TEXT, "on-demand"),
    Setting("priority_class", "placement.priority_class", TEXT),
    Setting("spread_zones", "placement.spread_zones", SWITCH, ON),
    Setting("model_cache", "storage.model_cache", TEXT, "none"),
    Setting("shm_size", "storage.shm_size", TEXT, "1Gi"),
    Setting("service_account", "storage.service_account", TEXT),
    Setting("storage_secret", "storage.secret", TEXT),
    Setting("strict_mtls", "network.strict_mtls", SWITCH, OFF),
    Setting("service_monitor", "network.service_monitor", SWITCH, OFF),
    Setting("summary_latencies", "summary_latencies", SWITCH, OFF),
    Setting("transformer_image", "components.transformer_image", TEXT),
    Setting("explainer_image", "components.explainer_image", TEXT),
)
OFFICE_HOURS: Final = (
    Setting("hours_start", "scaling.office_hours.start", TEXT, "07:00"),
    Setting("hours_end", "scaling.office_hours.end", TEXT, "20:00"),
    Setting("hours_days", "scaling.office_hours.days", TEXT, "1-5"),
    Setting("hours_timezone", "scaling.office_hours.timezone", TEXT, "UTC"),
    Setting("hours_replicas", "scaling.office_hours.replicas", NUMBER, "1"),
)
LLM: Final = (
    Setting("hugging_face_id", "llm.hugging_face_id", TEXT),
    Setting("llm_artifact", "llm.artifact", TEXT),
    Setting("parameters_millions", "llm.parameters_millions", GROUPED),
    Setting("nodes", "llm.nodes", NUMBER, "1"),
    Setting("context_tokens", "llm.max_model_len", NUMBER),
    Setting("concurrency", "llm.max_num_seqs", NUMBER),
    Setting("memory_percent", "llm.gpu_memory_utilization", PERCENT, "90"),
    Setting("kv_cache_dtype", "llm.kv_cache_dtype", TEXT, "auto"),
    Setting("prefix_caching", "llm.prefix_caching", SWITCH, ON),
)
# Further models in the same Triton, each as model:version. The form packs them with usual settings.
PACKED: Final = ("packed_1", "packed_2", "packed_3")
_ALL: Final = (*SETTINGS, *OFFICE_HOURS, *LLM)
DEFAULTS: Final[Mapping[str, str]] = {
    "engine": "kserve-triton",
    "environment": Environment.PRODUCTION,
    "min_replicas": "1",
    "max_replicas": "1",
    "cpu": "2",
    "memory": "8Gi",
    "office_hours": OFF,
    **dict.fromkeys(PACKED, ""),
    **{setting.field: setting.default for setting in _ALL},
}
# Field of the spec -> field of the form, for what the spec refuses.
RENAMED: Final[Mapping[str, str]] = {
    "version_id": "version",
    "cluster_id": "cluster",
    "instance_type": "share",
    "gpu_resource": "share",
    "gpus": "share",
    "llm.tensor_parallel": "share",
    "instances_per_gpu": "instances",
    "batching": "dynamic_batching",
    "llm": "engine",
    "components": "transformer_image",
    "scaling.office_hours": "office_hours",
    "packed": PACKED[0],
    **{f"packed.{index}.model": name for index, name in enumerate(PACKED)},
    **{f"packed.{index}.version": name for index, name in enumerate(PACKED)},
    **{setting.path: setting.field for setting in _ALL},
}
_KNOWN: Final = {"version_id", "cluster_id", "name", "environment", "spec", "comment"}
_PLAIN: Final = ("engine", "instance_type", "gpu_resource", "gpus")
_SIZES: Final = ("min_replicas", "max_replicas", "cpu", "memory")


def body_of(data: Mapping[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {"name": data.get("name", "")}
    body |= {"version_id": _number(data.get("version", ""))}
    body |= {"cluster_id": _number(data.get("cluster", "")), "spec": spec_of(data)}
    environment = data.get("environment", "")
    if environment not in ("", Environment.PRODUCTION):
        body["environment"] = environment
    return body | {"comment": data.get("comment", "")}


def spec_of(data: Mapping[str, str]) -> dict[str, Any]:
    instance_type, gpu_resource, gpus = (data.get("share", "") + "||").split("|")[:3]
    spec: dict[str, Any] = {"engine": data.get("engine", ""), "instance_type": instance_type}
    spec |= {"gpu_resource": gpu_resource, "gpus": _number(gpus)}
    spec |= {name: _number(data.get(name, "").strip()) for name in _SIZES[:2]}
    spec |= {name: data.get(name, "").strip() for name in _SIZES[2:]}
    pairs = (line.partition("=") for line in data.get("env", "").splitlines() if line.strip())
    spec["env"] = {name.strip(): value for name, _, value in pairs}
    _put(spec, SETTINGS, data)
    labels = [data[name] for name in PACKED if data.get(name)]
    if labels:
        spec["packed"] = [_of_label(label) for label in labels]
    if data.get("office_hours") == ON:
        spec.setdefault("scaling", {})["office_hours"] = {}
        _put(spec, OFFICE_HOURS, data)
    if data.get("engine") in LLM_ENGINES:
        spec["llm"] = {"tensor_parallel": _number(gpus)}
        _put(spec, LLM, data)
    return spec


def fields_of(body: Any) -> dict[str, str]:
    """Raises Unreadable."""
    spec = body.get("spec", {}) if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(spec, Mapping):
        raise Unreadable("Write name, version_id, cluster_id and spec as a mapping.")
    env = spec.get("env") or {}
    if not isinstance(env, Mapping):
        raise Unreadable("spec.env must map names to values.")
    _refuse_unknown(body, spec)
    share = (spec.get("instance_type", ""), spec.get("gpu_resource", ""), spec.get("gpus", ""))
    found = {name: spec[name] for name in ("engine", *_SIZES) if spec.get(name) is not None}
    found |= {"version": body.get("version_id", ""), "cluster": body.get("cluster_id", "")}
    found |= {"name": body.get("name", ""), "comment": body.get("comment", "")}
    found |= {"environment": body.get("environment", Environment.PRODUCTION)}
    texts = {name: "" if value is None else str(value) for name, value in found.items()}
    texts["share"] = "|".join(str(part) for part in share)
    texts["env"] = "\n".join(f"{name}={value}" for name, value in env.items())
    return texts | _settings_in(spec) | _packed_in(spec)


def _of_label(label: str) -> dict[str, Any]:
    model, _, version = label.rpartition(":")
    return {"model": model, "version": _number(version)}


def _packed_in(spec: Mapping[str, Any]) -> dict[str, str]:
    packed = spec.get("packed") or []
    if not isinstance(packed, list) or len(packed) > len(PACKED):
        raise Unreadable(f"spec.packed is a list; the form supports up to {len(PACKED)} models.")
    if not all(isinstance(one, Mapping) and set(one) == {"model", "version"} for one in packed):
        raise Unreadable(
            "The form supports only default settings of packed models. Give model and version, or "
            "send the request through the API."
        )
    labels = [f"{one['model']}:{one['version']}" for one in packed]
    return dict(zip(PACKED, labels, strict=False))


def _put(spec: dict[str, Any], settings: tuple[Setting, ...], data: Mapping[str, str]) -> None:
    for setting in settings:
        text = data.get(setting.field, setting.default).strip()
        if text == setting.default:
            continue
        *groups, name = setting.path.split(".")
        place = spec
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = setting.kind.read(text)


def _settings_in(spec: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for setting in _ALL:
        value: Any = spec
        for name in setting.path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            found[setting.field] = setting.kind.write(value)
    scaling = spec.get("scaling")
    has_hours = isinstance(scaling, Mapping) and scaling.get("office_hours") is not None
    return found | {"office_hours": _as_switch(has_hours)}


def _refuse_unknown(body: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    paths = {setting.path for setting in _ALL} | {"llm.tensor_parallel", "scaling.office_hours"}
    groups = {path.rpartition(".")[0] for path in paths if "." in path}
    known = paths | groups | {"env", "packed", *_PLAIN, *_SIZES}
    unknown = sorted(str(name) for name in set(body) - _KNOWN)
    unknown += [f"spec.{path}" for path in sorted(_paths(spec, groups) - known)]
    if unknown:
        raise Unreadable(f"There is no field {unknown[0]!r}; leave it out.")


def _paths(value: Mapping[str, Any], groups: set[str], prefix: str = "") -> set[str]:
    found = set()
    for name, item in value.items():
        path = f"{prefix}{name}"
        found.add(path)
        if path in groups and isinstance(item, Mapping):
            found |= _paths(item, groups, f"{path}.")
    return found
