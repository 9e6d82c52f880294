"""Every field of every class of the client is in docs/openapi.yaml, with the same type."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway_client import types as answers

ROOT = Path(__file__).resolve().parents[2]
# By libyaml: each worker of a run reads it, and in Python that takes more than a second.
SCHEMAS = yaml.load((ROOT / "docs" / "openapi.yaml").read_text(), Loader=yaml.CSafeLoader)[
    "components"
]["schemas"]
# Names of the document that would say too little in a notebook.
NAMES = {"CostsKey": "Key"}
SCALARS = {
    str: {"string"},
    int: {"integer"},
    bool: {"boolean"},
    float: {"number", "integer"},
    Decimal: {"string"},
    datetime: {"string"},
    date: {"string"},
}


@pytest.mark.parametrize("name", answers.__all__)
def test_every_field_is_in_the_document(name: str) -> None:
    kind = getattr(answers, name)
    schema = SCHEMAS[NAMES.get(name, name)]
    problems = []
    for field_name, hint in typing.get_type_hints(kind).items():
        if field_name == "raw":
            continue
        field = schema["properties"].get(field_name)
        if field is None:
            problems.append(f"{field_name}: not in the document")
            continue
        problems += difference(field_name, hint, field)
        if field_name not in schema["required"] and has_no_default(kind, field_name):
            problems.append(f"{field_name}: may be absent and has no default")

    assert problems == []


def difference(name: str, hint: Any, field: Mapping[str, Any]) -> list[str]:
    """Why `hint` cannot hold what the document promises; empty when it can."""
    schema, is_nullable = resolved(field)
    hint_is_nullable = type(None) in typing.get_args(hint)
    if is_nullable != hint_is_nullable:
        return [f"{name}: null is {'' if is_nullable else 'not '}possible in the document"]
    if hint_is_nullable:
        hint = next(kind for kind in typing.get_args(hint) if kind is not types.NoneType)
    return [] if fits(hint, schema) else [f"{name}: {hint} is not {schema}"]


def fits(hint: Any, schema: Mapping[str, Any]) -> bool:
    origin = typing.get_origin(hint)
    if origin is tuple:
        item, _ = resolved(schema.get("items", {}))
        return schema.get("type") == "array" and fits(typing.get_args(hint)[0], item)
    if origin is Mapping:
        return schema.get("type") == "object"
    if dataclasses.is_dataclass(hint):
        return "properties" in schema
    if hint is datetime and schema.get("format") != "date-time":
        return False
    return schema.get("type") in SCALARS[hint]


def resolved(field: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema behind references, and whether the document allows null."""
    is_nullable = bool(field.get("nullable"))
    if "oneOf" in field:
        options = [resolved(option)[0] for option in field["oneOf"]]
        is_nullable |= any(option.get("enum") == [None] for option in options)
        return next(option for option in options if option.get("enum") != [None]), is_nullable
    if "allOf" in field:
        inner, is_inner_nullable = resolved(field["allOf"][0])
        return inner, is_nullable or is_inner_nullable
    if "$ref" in field:
        inner, is_inner_nullable = resolved(SCHEMAS[field["$ref"].rpartition("/")[2]])
        return inner, is_nullable or is_inner_nullable
    return field, is_nullable


def has_no_default(kind: Any, name: str) -> bool:
    field = next(field for field in dataclasses.fields(kind) if field.name == name)
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def test_a_disagreement_is_noticed() -> None:
    number = {"type": "integer"}

    assert difference("size", int, number) == []
    assert difference("size", str, number) != []
    assert difference("size", int | None, number) != []
    assert difference("size", int, {**number, "nullable": True}) != []
    assert difference("sizes", tuple[int, ...], {"type": "array", "items": number}) == []
    assert difference("sizes", tuple[str, ...], {"type": "array", "items": number}) != []
