"""Refusing a value: the path of each wrong field and its fix."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from portal.core.definitions import unknown_names
from portal.core.definitions.fields import FieldDefinition, fields_of

_WRONG_TYPE: Final = {
    "bool": "is not true or false.",
    "int": "is not a whole number.",
    "float": "is not a number.",
    "string": "is not text.",
}

# The path of a field, whether it is right, and the fix where it is not: for rules across fields.
Rule = tuple[str, bool, str]


class Rejected(ValueError):
    """A definition is invalid. `fields` maps the dotted path of a field to what is wrong with it and how to fix it."""

    def __init__(self, message: str, fields: Mapping[str, str]) -> None:
        super().__init__(message)
        self.message = message
        self.fields = dict(fields)


def check(rules: Iterable[Rule]) -> None:
    """Raise Rejected with the fix of every field whose rule is broken; the first rule of a field counts."""
    broken: dict[str, str] = {}
    for path, is_right, fix in rules:
        if not is_right:
            broken.setdefault(path, fix)
    if broken:
        raise Rejected(f"Check {', '.join(sorted(broken))}.", broken)


def check_names(place: str, value: Mapping[Any, Any], known: Sequence[str]) -> None:
    """Raise Rejected for what is not known, each with the nearest known name."""
    unknown = {
        f"{place}.{str(name)[: unknown_names.LONGEST]}": unknown_names.describe(str(name), known)
        for name in value
        if name not in known
    }
    if unknown:
        raise Rejected(f"Check {place}: {' '.join(unknown.values())}", unknown)


@contextmanager
def inside(part: str) -> Iterator[None]:
    """Put the part before the paths of what is refused here."""
    try:
        yield
    except Rejected as error:
        fields = {f"{part}.{path}".rstrip("."): fix for path, fix in error.fields.items()}
        raise Rejected(f"Check {', '.join(sorted(fields))}.", fields) from error


def describe_type(model: type[BaseModel]) -> str:
    return f"must be an object with {', '.join(fields_of(model))}."


def rejection_of(error: ValidationError, model: type[BaseModel]) -> Rejected:
    """Convert the errors of pydantic to paths and fixes."""
    fields: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        for path, message in _messages(detail, model):
            fields.setdefault(path, message)
    named = ", ".join(sorted(path for path in fields if path))
    return Rejected(f"Check {named}." if named else next(iter(fields.values())), fields)


def _messages(detail: Any, model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Return path and fix of each error. A nested definition has raised Rejected already; its paths are appended."""
    location: tuple[int | str, ...] = detail["loc"]
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, Rejected):
        prefix = ".".join(map(str, location))
        for path, message in raised.fields.items():
            yield ".".join(part for part in (prefix, path) if part), message
        return
    definition, parent = _find(location, model)
    if definition is not None and definition.is_list and definition.model is None:
        # A list of plain values is one field.
        names = [part for part in location if not isinstance(part, int)]
        yield ".".join(map(str, names)), _message(detail, definition, parent)
    else:
        yield ".".join(map(str, location)), _message(detail, definition, parent)


def _find(
    location: tuple[int | str, ...], model: type[BaseModel]
) -> tuple[FieldDefinition | None, type[BaseModel]]:
    """Find the field at the location, or None, and the model that has it or lacks it."""
    definition, inside = None, model
    for part in location:
        if isinstance(part, int):
            continue
        if definition is not None and definition.model is not None:
            inside = definition.model
        definition = fields_of(inside).get(part)
        if definition is None:
            break
    return definition, inside


def _message(detail: Any, definition: FieldDefinition | None, parent: type[BaseModel]) -> str:
    kind: str = detail["type"]
    name = str(detail["loc"][-1]) if detail["loc"] else ""
    if kind == "extra_forbidden":
        return unknown_names.describe(name, fields_of(parent))
    if kind == "missing":
        return (definition.fix if definition else "") or f"State {name}."
    if definition is None:
        return str(detail["msg"]).removeprefix("Value error, ")
    if kind == "value_error":
        return definition.fix or str(detail["ctx"]["error"])
    return _wrong_type(kind, detail["input"], definition) or _wrong_value(definition, detail)


def _wrong_type(kind: str, value: Any, definition: FieldDefinition) -> str:
    if kind in ("model_type", "dict_type", "model_attributes_type") and definition.model:
        is_item = definition.is_list and not isinstance(value, list | tuple)
        return describe_type(definition.model) if is_item or not definition.is_list else ""
    if definition.is_list and kind.endswith("_type"):
        return _describe_list(definition)
    wrong = _WRONG_TYPE.get(kind.partition("_")[0], "") if not definition.values else ""
    is_wrong_type = kind.endswith(("_type", "_unicode", "_from_float"))
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{text} {wrong}" if wrong and is_wrong_type else ""


def _describe_list(definition: FieldDefinition) -> str:
    if definition.model is not None:
        return f"must be a list of objects with {', '.join(fields_of(definition.model))}."
    items = {int: "whole numbers", float: "numbers", str: "texts"}.get(definition.kind, "values")
    return f"must be a list of {items}"


def _wrong_value(definition: FieldDefinition, detail: Any) -> str:
    if definition.fix:
        return definition.fix
    if definition.values:
        return f"Use one of {', '.join(value for value in definition.values if value)}."
    bounds = (definition.minimum, definition.maximum)
    if None not in bounds:
        return f"Use {bounds[0]} to {bounds[1]}{definition.unit and f' {definition.unit}'}."
    if detail["type"] == "string_too_long":
        return f"Use at most {definition.max_length} characters."
    return f"{detail['msg']}."
