"""The form's texts as the body of POST /api/v1/deployments, and back.

A setting of the spec is a field of the form under its dotted path, with "_" for each dot. What has
its default is left out, so that a copied request says what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.placement.catalogue import Placement
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from deployments.states import Environment
from portal.core import definitions
from portal.core.definitions import FieldDefinition, Rejected
from portal.core.definitions.unknown_names import describe
from portal.ui import definition_fields
from portal.ui.definition_fields import ON, parse_number

# Chosen together as the GPU share of a replica.
_SHARE: Final = ("instance_type", "gpu_resource", "gpus", "llm.tensor_parallel")
# Always in the body, with their default too.
SIZES: Final = ("min_replicas", "max_replicas", "cpu", "memory")
# With fields of their own in the form, or none.
_APART: Final = frozenset(
    {"engine", *_SHARE, *SIZES, "env", "image", "schema", "llm", "additional_models"}
)
# Further models in the same Triton, each as model:version, with default settings.
ADDITIONAL_MODELS: Final = ("additional_model_1", "additional_model_2", "additional_model_3")
_BODY: Final = ("version_id", "cluster_id", "name", "environment", "spec", "comment")


class Unreadable(Exception):
    """A request body with a field that no request has. The message says which, and the fix."""


@dataclass(frozen=True, slots=True)
class FormSetting:
    """A field of the form, its place in the spec, and the text of its default."""

    name: str
    path: str
    definition: FieldDefinition
    default: str

    @property
    def group(self) -> str:
        """The group in which the form shows the setting: its own group before that of its part."""
        top = DEFINITIONS[self.path.partition(".")[0]]
        return str(self.definition.extra.get("group") or top.extra.get("group", "advanced"))

    @property
    def switch(self) -> str:
        """The field that switches the setting's part on. Empty if it has none."""
        part = self.path.rpartition(".")[0].replace(".", "_")
        return part if part in SETTINGS else ""


DEFINITIONS: Final = definitions.deep_fields_of(ServingSpec)


def _settings() -> Iterator[FormSetting]:
    for path, definition in DEFINITIONS.items():
        is_value = definition.model is None or definition_fields.is_switch(definition)
        if is_value and path not in _APART:
            default = definition_fields.default_text(definition)
            yield FormSetting(path.replace(".", "_"), path, definition, default)


SETTINGS: Final[Mapping[str, FormSetting]] = {setting.name: setting for setting in _settings()}
DEFAULTS: Final[Mapping[str, str]] = {
    "engine": "kserve-triton",
    "environment": Environment.PRODUCTION,
    **{name: definition_fields.default_text(DEFINITIONS[name]) for name in SIZES},
    **dict.fromkeys(ADDITIONAL_MODELS, ""),
    **{setting.name: setting.default for setting in SETTINGS.values()},
}


def _parts() -> Iterator[tuple[str, str]]:
    """Yield each part of the spec with its first setting, where a part that is refused as a whole shows."""
    for path, definition in DEFINITIONS.items():
        names = [
            setting.name for setting in SETTINGS.values() if setting.path.startswith(f"{path}.")
        ]
        if definition.model is not None and names:
            yield path, names[0]


# Field of the request -> field of the form, for what the spec refuses.
RENAMED: Final[Mapping[str, str]] = {
    "version_id": "version",
    "cluster_id": "cluster",
    **dict.fromkeys(_SHARE, "share"),
    **dict(_parts()),
    "llm": "engine",
    "additional_models": ADDITIONAL_MODELS[0],
    **{
        f"additional_models.{i}.{part}": name
        for i, name in enumerate(ADDITIONAL_MODELS)
        for part in AdditionalModel.model_fields
    },
    **{setting.path: setting.name for setting in SETTINGS.values()},
}


def names_in(group: str) -> tuple[str, ...]:
    return tuple(setting.name for setting in SETTINGS.values() if setting.group == group)


def applies(setting: FormSetting, data: Mapping[str, str]) -> bool:
    """Whether the setting's part is in the request: that of a language model, or one that is switched on."""
    if setting.group == "llm" and data.get("engine") not in LLM_ENGINES:
        return False
    return not setting.switch or data.get(setting.switch) == ON


def body_of(data: Mapping[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {"name": data.get("name", "")}
    body |= {"version_id": parse_number(data.get("version", ""))}
    body |= {"cluster_id": parse_number(data.get("cluster", "")), "spec": spec_of(data)}
    environment = data.get("environment", "")
    if environment not in ("", Environment.PRODUCTION):
        body["environment"] = environment
    return body | {"comment": data.get("comment", "")}


def spec_of(data: Mapping[str, str]) -> dict[str, Any]:
    instance_type, gpu_resource, gpus = (data.get("share", "") + "||").split("|")[:3]
    spec: dict[str, Any] = {"engine": data.get("engine", ""), "instance_type": instance_type}
    spec |= {"gpu_resource": gpu_resource, "gpus": parse_number(gpus)}
    for name in SIZES:
        text = data.get(name, "").strip()
        spec[name] = definition_fields.from_text(DEFINITIONS[name], text)
    pairs = (line.partition("=") for line in data.get("env", "").splitlines() if line.strip())
    spec["env"] = {name.strip(): value for name, _, value in pairs}
    labels = [data[name] for name in ADDITIONAL_MODELS if data.get(name)]
    if labels:
        spec["additional_models"] = [_additional_model_of(label) for label in labels]
    if data.get("engine") in LLM_ENGINES:
        spec["llm"] = {"tensor_parallel": _gpus_of_copy(gpus, data.get("llm_data_parallel", "1"))}
    for setting in SETTINGS.values():
        text = data.get(setting.name, setting.default).strip()
        if text != setting.default and applies(setting, data):
            _put(spec, setting.path, definition_fields.from_text(setting.definition, text))
    return spec


def placement_of(data: Mapping[str, str]) -> Placement:
    """Read the placement that is being typed. What is refused keeps its default until it is right."""
    placement = Placement()
    for name in names_in("placement"):
        setting, text = SETTINGS[name], data.get(name, "").strip()
        if setting.path.startswith("placement.") and text != setting.default:
            value = definition_fields.from_text(setting.definition, text)
            with suppress(Rejected):
                placement = placement.replace(**{setting.definition.name: value})
    return placement


def _gpus_of_copy(gpus: str, copies: str) -> Any:
    """Return the GPUs of each copy of the model in a replica; all of them if that leaves a rest, which the rules
    refuse.
    """
    whole, parts = parse_number(gpus), parse_number(copies)
    if isinstance(whole, int) and isinstance(parts, int) and parts and whole % parts == 0:
        return whole // parts
    return whole


def fields_of(body: Any) -> dict[str, str]:
    """Return the form's fields of a request body. Raises Unreadable."""
    spec = body.get("spec", {}) if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(spec, Mapping):
        raise Unreadable("Write name, version_id, cluster_id and spec as a mapping.")
    env = spec.get("env") or {}
    if not isinstance(env, Mapping):
        raise Unreadable("spec.env must map names to values.")
    _refuse_unknown(body, spec)
    share = (spec.get("instance_type", ""), spec.get("gpu_resource", ""), spec.get("gpus", ""))
    values = {name: spec[name] for name in ("engine", *SIZES) if spec.get(name) is not None}
    values |= {"version": body.get("version_id", ""), "cluster": body.get("cluster_id", "")}
    values |= {"name": body.get("name", ""), "comment": body.get("comment", "")}
    values |= {"environment": body.get("environment", Environment.PRODUCTION)}
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    texts["share"] = "|".join(str(part) for part in share)
    texts["env"] = "\n".join(f"{name}={value}" for name, value in env.items())
    return texts | texts_of(spec) | _additional_models_in(spec)


def _additional_model_of(label: str) -> dict[str, Any]:
    model, _, version = label.rpartition(":")
    return {"model": model, "version": parse_number(version)}


def _additional_models_in(spec: Mapping[str, Any]) -> dict[str, str]:
    additional = spec.get("additional_models") or []
    if not isinstance(additional, list) or len(additional) > len(ADDITIONAL_MODELS):
        raise Unreadable(
            f"spec.additional_models is a list; the form supports up to {len(ADDITIONAL_MODELS)} models."
        )
    if not all(
        isinstance(item, Mapping) and set(item) == {"model", "version"} for item in additional
    ):
        raise Unreadable(
            "The form supports only default settings of additional models. Give model and version, or "
            "send the request through the API."
        )
    labels = [f"{item['model']}:{item['version']}" for item in additional]
    return dict(zip(ADDITIONAL_MODELS, labels, strict=False))


def _put(spec: dict[str, Any], path: str, value: Any) -> None:
    *parts, name = path.split(".")
    place = spec
    for part in parts:
        place = place.setdefault(part, {})
    place[name] = value


def texts_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the settings that a spec, or a part of it, states."""
    texts = {}
    for setting in SETTINGS.values():
        value: Any = spec
        for name in setting.path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            texts[setting.name] = definition_fields.to_text(setting.definition, value)
    return texts


def clear_defaults(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a stored spec, which has 0 where a field is empty by default, with these fields empty."""
    return {
        name: setting.default
        if (setting := SETTINGS.get(name)) and text == _stored_default(setting)
        else text
        for name, text in texts.items()
    }


def _stored_default(setting: FormSetting) -> str | None:
    """Return the text of the default as a spec stores it: 0 where the field is empty. None without a default."""
    definition = setting.definition
    if definition.is_required:
        return None
    default = definition.default
    return definition_fields.to_text(definition, list(default) if definition.is_list else default)


def _refuse_unknown(body: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    known = [*_BODY, *(f"spec.{path}" for path in DEFINITIONS)]
    for path in (*map(str, body), *_paths(spec, "spec.")):
        if path not in known:
            raise Unreadable(describe(path, known))
    for name, definition in DEFINITIONS.items():
        if (
            definition.extra.get("read_only")
            and spec.get(name, definition.default) != definition.default
        ):
            raise Unreadable(f"The portal sets spec.{name}. Remove it.")


def _paths(value: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Yield the dotted paths of all fields. A part that is not a mapping is refused."""
    for name, item in value.items():
        path = f"{prefix}{name}"
        yield path
        definition = DEFINITIONS.get(path.removeprefix("spec."))
        if definition is None or definition.model is None or definition.is_list or item is None:
            continue
        if not isinstance(item, Mapping):
            raise Unreadable(f"{path} must be a mapping.")
        yield from _paths(item, f"{path}.")
