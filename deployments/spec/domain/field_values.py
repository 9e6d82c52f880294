"""Fields of a serving spec as people read them: one line for each setting, no values of Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from deployments.spec.domain.serving_spec import ServingSpec
from portal.core import definitions

_NAMES: Final = {"gpu": "GPU", "id": "ID", "sha256": "SHA-256", "url": "URL"}
_PAIRS: Final = ("env",)


def flatten(fields: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return text by dotted name. What is not set is left empty."""
    return dict(_lines(fields, prefix))


def describe_field(path: str) -> str:
    """Name a field for people: "scaling.cooldown_seconds" is "Autoscaling: Cooldown (seconds)". What is no
    field of the spec keeps its own name.
    """
    labels = _labels(path)
    if labels:
        return ": ".join(labels)
    name = ": ".join(_describe_part(part) for part in path.split("."))
    return name[:1].upper() + name[1:]


def describe_value(path: str, text: str) -> str:
    """Return a choice by its label; any other text is what it is."""
    *_, (_, definition) = _steps(path)
    return text if definition is None else definition.choices.get(text, text)


def format_value(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(_pair(str(key), item) for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item) for item in value)
    return str(value)


def _lines(fields: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if key in _PAIRS and isinstance(value, Mapping):
            yield name, ", ".join(f"{variable}={value[variable]}" for variable in sorted(value))
        elif isinstance(value, Mapping):
            yield from _lines(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            yield from _items(value, name)
        else:
            yield name, format_value(value)


def _items(values: list[Mapping[str, Any]], name: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a list. Further models are named as people name versions; other parts are counted."""
    for number, item in enumerate(values, start=1):
        rest = dict(item)
        if "model" in rest and "version" in rest:
            yield f"{name}.{number}", f"{rest.pop('model')}:{rest.pop('version')}"
        yield from _lines(rest, f"{name}.{number}.")


def _pair(key: str, value: Any) -> str:
    return f"{_describe_part(key)} {format_value(value)}".strip()


def _labels(path: str) -> list[str]:
    """Return the labels of a field and of its enclosing parts, from their definitions. Empty if unknown."""
    labels: list[str] = []
    for name, definition in _steps(path):
        if definition is None and labels and name.isdigit():
            labels[-1] = f"{labels[-1]} {name}"
            continue
        if definition is None:
            return []
        # A ratio is written as it is in the spec.
        unit = f" ({definition.unit})" if definition.unit not in ("", "%") else ""
        label = f"{definition.label}{unit}"
        labels += [] if label in labels else [label]
    return labels


def _steps(path: str) -> Iterator[tuple[str, definitions.FieldDefinition | None]]:
    """Yield each part of the path with what defines it."""
    model: type[BaseModel] = ServingSpec
    for name in path.split("."):
        definition = definitions.fields_of(model).get(name)
        yield name, definition
        if definition is not None:
            model = definition.model or model


def _describe_part(part: str) -> str:
    return " ".join(_NAMES.get(word, word) for word in part.split("_"))
