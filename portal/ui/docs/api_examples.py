"""Examples for the reference of the REST API, made from its schemas: an answer as JSON, a request as curl."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

Schema = Mapping[str, Any]
Schemas = Mapping[str, Schema]

# Deeper objects are shown as {}: their own types have their fields.
_MAX_DEPTH: Final = 3
_TIME: Final = "2026-11-25T09:30:00Z"
_OF_FORMAT: Final = {
    "date-time": _TIME,
    "date": _TIME[:10],
    "decimal": "12.50",
    "uri": "https://example.org",
    "uuid": "3f2b8c1e-7a4d-4e0b-9c55-1d2e3f4a5b6c",
    "email": "ana@example.org",
}
_OF_NAME: Final = {
    "team": "vision",
    "slug": "vision",
    "name": "detector",
    "model": "detector",
    "username": "ana",
    "comment": "weekly release",
    "reason": "weekly release",
}
_OF_TYPE: Final[Mapping[str, Any]] = {"integer": 1, "number": 1.5, "boolean": True}


def get_name(schema: Schema) -> str:
    """Return the name of the type to which a schema refers."""
    return str(schema["$ref"]).rpartition("/")[2]


def write_json(schema: Schema, schemas: Schemas) -> str:
    return json.dumps(_make(schema, schemas), indent=2, ensure_ascii=False)


def write_curl(method: str, path: str, schema: Schema | None, schemas: Schemas) -> str:
    """Write the request for a shell. Values of the path are variables: $DEPLOYMENT_ID."""
    address = re.sub(r"\{(\w+)\}", lambda found: f"${found[1].upper()}", path)
    lines = ["curl --fail-with-body", '-H "Authorization: Bearer $SLIPWAY_TOKEN"']
    if method != "GET":
        lines.append(f"-X {method}")
    if schema is not None:
        body = json.dumps(_make_smallest(schema, schemas), ensure_ascii=False)
        quoted = body.replace("'", "'\\''")
        lines += ['-H "Content-Type: application/json"', f"-d '{quoted}'"]
    lines.append(f'"$SLIPWAY_URL{address}"')
    return " \\\n  ".join(lines)


def _make_smallest(schema: Schema, schemas: Schemas) -> Any:
    """Make a body with the fields that must be there. Without any, with the first two."""
    target = schemas[get_name(schema)] if "$ref" in schema else schema
    fields = target.get("properties", {})
    required = [name for name in target.get("required", ()) if "default" not in fields[name]]
    names = required or list(fields)[:2]
    return {name: _make(fields[name], schemas, name, depth=1) for name in names}


def _make(schema: Schema, schemas: Schemas, name: str = "", *, depth: int = 0) -> Any:
    schema = _choose(schema, schemas)
    if "example" in schema:
        return schema["example"]
    if schema.get("type") == "array":
        return _make_list(schema, schemas, name, depth=depth)
    if "properties" in schema:
        fields = schema["properties"].items() if depth < _MAX_DEPTH else ()
        return {field: _make(each, schemas, field, depth=depth + 1) for field, each in fields}
    return _make_plain(schema, name)


def _make_list(schema: Schema, schemas: Schemas, name: str, *, depth: int) -> list[Any]:
    if depth >= _MAX_DEPTH:
        return []
    return [_make(schema.get("items", {}), schemas, name, depth=depth + 1)]


def _choose(schema: Schema, schemas: Schemas) -> Schema:
    """Follow references, and the first of several choices, to a schema that describes a value itself."""
    while "example" not in schema:
        if "$ref" in schema:
            schema = schemas[get_name(schema)]
        elif choices := (*schema.get("allOf", ()), *schema.get("oneOf", ())):
            schema = choices[0]
        else:
            break
    return schema


def _make_plain(schema: Schema, name: str) -> Any:
    if schema.get("default") not in (None, ""):
        return schema["default"]
    kind = schema.get("type", "object")
    if kind == "object":
        return {}
    if values := [value for value in schema.get("enum", ()) if value]:
        return values[0]
    if schema.get("format") in _OF_FORMAT:
        return _OF_FORMAT[schema["format"]]
    if kind in _OF_TYPE:
        return max(_OF_TYPE[kind], schema.get("minimum", 0))
    return _OF_NAME.get(name, name.replace("_", "-") or "text")
