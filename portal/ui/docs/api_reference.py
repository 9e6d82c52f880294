"""The reference of the REST API, from the OpenAPI document of the release: groups of operations, and their types.

A type with fields is described once for each group; operations and other types link to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import yaml
from django.conf import settings
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from portal.accounts.operations import OPERATIONS
from portal.ui import markdown
from portal.ui.docs import api_examples
from portal.ui.docs.api_examples import Schema

PROBLEM: Final = "Problem"
_PREFIX: Final = "/api/v1/"
# drf-spectacular repeats the values of an enum in its description.
_REPEATED_VALUES: Final = re.compile(r"^\* `.*$", re.MULTILINE)
# The types of the answers with a page of a list.
_PAGE_OF: Final = "Paginated"
_FORMATS: Final = {
    "date-time": "time",
    "date": "date",
    "decimal": "decimal as text",
    "double": "number",
    "uri": "URL",
    "uuid": "UUID",
    "email": "mail address",
}
_TYPES: Final = {"boolean": "true or false", "object": "object"}
_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matches {}"),
)


@dataclass(frozen=True, slots=True)
class FieldKind:
    """The kind of a value: "list of" and the name of a type, or text alone, such as "integer"."""

    text: str
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class ApiField:
    name: str
    kind: FieldKind
    is_required: bool
    description: SafeString
    limits: Sequence[str]
    choices: Sequence[str]


@dataclass(frozen=True, slots=True)
class ApiType:
    name: str
    description: SafeString
    fields: Sequence[ApiField]


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    status: int
    title: str
    description: str
    media_type: str
    kind: FieldKind | None
    example: str


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    title: str
    method: str
    path: str
    description: SafeString
    # Of an API token; empty where only a browser's session may call it.
    scope: str
    parameters: Sequence[ApiField]
    body: Sequence[ApiField]
    answers: Sequence[ApiAnswer]
    refusals: Sequence[int]
    headers: Sequence[str]
    curl: str

    @property
    def short_path(self) -> SafeString:
        """The path below /api/v1, which may break after each slash."""
        parts = [(part,) for part in self.path.removeprefix(_PREFIX).split("/")]
        return format_html_join("", "/<wbr>{}", parts)


@dataclass(frozen=True, slots=True)
class OperationGroup:
    name: str
    slug: str
    operations: Sequence[Operation]
    types: Sequence[ApiType]


def list_groups() -> Sequence[OperationGroup]:
    """List the groups by name, each with its operations by path."""
    return _read(_path())


def find_group(slug: str) -> OperationGroup | None:
    return next((group for group in list_groups() if group.slug == slug), None)


def describe_problem() -> ApiType:
    """Describe the answer to each refused request."""
    return _Reader(_load(_path())).describe_type(PROBLEM)


def _path() -> Path:
    return Path(settings.FILES_DIR) / "docs" / "openapi.yaml"


@lru_cache(maxsize=1)
def _load(path: Path) -> Mapping[str, Any]:
    document: Mapping[str, Any] = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    return document


@lru_cache(maxsize=1)
def _read(path: Path) -> Sequence[OperationGroup]:
    document = _load(path)
    reader = _Reader(document)
    by_name: dict[str, list[Operation]] = {}
    for address, methods in document["paths"].items():
        for method, operation in methods.items():
            described = reader.describe_operation(method, address, operation)
            by_name.setdefault(operation["tags"][0], []).append(described)
    return [
        OperationGroup(
            name.capitalize(), name.replace(" ", "-"), operations, reader.list_types(operations)
        )
        for name, operations in sorted(by_name.items())
    ]


class _Reader:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Schema] = document["components"]["schemas"]

    def describe_operation(self, method: str, path: str, operation: Mapping[str, Any]) -> Operation:
        name = operation["operationId"]
        key = f"{method} {path.removeprefix(_PREFIX)}"
        body = operation.get("requestBody", {}).get("content", {})
        schema = next((content["schema"] for content in body.values()), None)
        parameters = operation.get("parameters", [])
        responses = {int(status): each for status, each in operation["responses"].items()}
        return Operation(
            name=name,
            title=name.replace("_", " ").capitalize(),
            method=method.upper(),
            path=path,
            description=markdown.render(operation.get("description", "")),
            scope=str(OPERATIONS.get(key) or ""),
            parameters=[
                self._describe_parameter(each)
                for place in ("path", "query")
                for each in parameters
                if each["in"] == place
            ],
            body=list(self._list_fields(self._follow(schema))) if schema else [],
            answers=[
                self._describe_answer(status, each)
                for status, each in responses.items()
                if status < HTTPStatus.BAD_REQUEST
            ],
            refusals=[status for status in sorted(responses) if status >= HTTPStatus.BAD_REQUEST],
            headers=[each["name"] for each in parameters if each["in"] == "header"],
            curl=api_examples.write_curl(method.upper(), path, schema, self._schemas),
        )

    def describe_type(self, name: str) -> ApiType:
        schema = self._schemas[name]
        fields = list(self._list_fields(schema))
        return ApiType(name, _describe(schema), fields)

    def list_types(self, operations: Sequence[Operation]) -> Sequence[ApiType]:
        """List the types that the operations name, and those that these name in turn."""
        kinds = [field.kind for each in operations for field in (*each.parameters, *each.body)]
        kinds += [answer.kind for each in operations for answer in each.answers if answer.kind]
        waiting = [kind.type_name for kind in kinds if kind.type_name]
        found: dict[str, ApiType] = {}
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self.describe_type(name)
                waiting += [f.kind.type_name for f in found[name].fields if f.kind.type_name]
        return [found[name] for name in sorted(found)]

    def _describe_parameter(self, parameter: Mapping[str, Any]) -> ApiField:
        schema = {**parameter["schema"], "description": parameter.get("description", "")}
        name = parameter["name"]
        is_required = parameter.get("required", False)
        field = self._describe_field(name, schema, is_required=is_required)
        limits = ["in the path", *field.limits] if parameter["in"] == "path" else field.limits
        return ApiField(
            name, field.kind, field.is_required, field.description, limits, field.choices
        )

    def _list_fields(self, schema: Schema, prefix: str = "") -> Iterator[ApiField]:
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            # In a request, what has a default may be left out.
            is_required = name in required and "default" not in field
            yield self._describe_field(f"{prefix}{name}", field, is_required=is_required)
            inner = field.get("items", field)
            if "properties" in inner:
                marker = "[]." if "items" in field else "."
                yield from self._list_fields(inner, f"{prefix}{name}{marker}")

    def _describe_field(self, name: str, schema: Schema, *, is_required: bool) -> ApiField:
        followed = self._follow(schema)
        limits = [text.format(followed[key]) for key, text in _LIMITS if key in followed]
        if (default := schema.get("default")) not in (None, "", [], {}):
            limits.append(f"default {_write_default(default)}")
        if schema.get("readOnly"):
            limits.append("read only")
        return ApiField(
            name=name,
            kind=self._find_kind(schema),
            is_required=is_required,
            description=_describe(schema) or _describe(followed),
            limits=limits,
            choices=self._list_choices(schema),
        )

    def _describe_answer(self, status: int, response: Mapping[str, Any]) -> ApiAnswer:
        contents: Mapping[str, Any] = response.get("content", {})
        media_type = next(iter(contents), "")
        schema = contents[media_type]["schema"] if contents else None
        is_json = media_type == "application/json"
        return ApiAnswer(
            status=status,
            title=HTTPStatus(status).phrase,
            description=response.get("description", ""),
            media_type="" if is_json else media_type,
            kind=self._find_kind(schema) if schema else None,
            example=api_examples.write_json(schema, self._schemas) if schema and is_json else "",
        )

    def _follow(self, schema: Schema) -> Schema:
        """Return the schema that references and lists of one lead to."""
        while True:
            if "$ref" in schema:
                schema = self._schemas[api_examples.get_name(schema)]
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema

    def _find_kind(self, schema: Schema) -> FieldKind:
        if "$ref" in schema:
            return self._find_kind_of_type(api_examples.get_name(schema))
        if choices := (*schema.get("allOf", ()), *schema.get("oneOf", ())):
            return self._find_kind(choices[0])
        if schema.get("type") == "array":
            return _nest("list of", self._find_kind(schema.get("items", {})))
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values:
            return _nest("map of", self._find_kind(values))
        kind = str(schema.get("type", "any value"))
        return FieldKind(_FORMATS.get(schema.get("format", ""), _TYPES.get(kind, kind)))

    def _find_kind_of_type(self, name: str) -> FieldKind:
        """Find the kind of a type by its name. One without fields, such as an enum, is a value."""
        schema = self._schemas[name]
        if name.startswith(_PAGE_OF):
            return _nest("page of", self._find_kind(schema["properties"]["results"]["items"]))
        return FieldKind("", name) if "properties" in schema else self._find_kind(schema)

    def _list_choices(self, schema: Schema) -> list[str]:
        """List the values of an enum. An empty one, which says "none", is left out."""
        schema = self._follow(schema)
        if schema.get("type") == "array":
            return self._list_choices(schema.get("items", {}))
        inner = [value for each in schema.get("oneOf", ()) for value in self._list_choices(each)]
        return [*inner, *(str(value) for value in schema.get("enum", ()) if value)]


def _nest(text: str, inner: FieldKind) -> FieldKind:
    return FieldKind(f"{text} {inner.text}".strip(), inner.type_name)


def _describe(schema: Schema) -> SafeString:
    text = _REPEATED_VALUES.sub("", schema.get("description", "")).strip()
    return markdown.render_line(text)


def _write_default(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
