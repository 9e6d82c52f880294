"""The fields of a definition, as REST, forms and rules read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypedDict, Unpack, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.fields import FieldInfo


class Extra(TypedDict, total=False):
    """How REST and forms show a field, beyond its type and bounds."""

    # Of what is stored only: REST and forms do not have it.
    is_stored: bool
    # Only shown by REST: the portal sets it.
    read_only: bool
    # Left out, it depends on other fields, so REST states no default.
    is_derived: bool
    # REST offers no empty text although the definition accepts it.
    is_blank_hidden: bool
    # Pairs that REST and YAML write as an object.
    is_mapping: bool
    # 0 means "not set", which is an empty field of a form.
    is_empty_zero: bool
    # A form accepts 8,030 for 8030.
    has_separators: bool
    # Bounds of a list that its own check names; REST states them.
    most_items: int
    longest_item: int
    placeholder: str
    # Where a form shows it; of a part, where it shows the fields of the part.
    group: str


def setting(
    label: str,
    help_text: str = "",
    *,
    fix: str = "",
    unit: str = "",
    choices: Mapping[str, str] | None = None,
    ge: float | None = None,
    le: float | None = None,
    pattern: str | None = None,
    max_length: int | None = None,
    alias: str | None = None,
    **extra: Unpack[Extra],
) -> Any:
    """Describe a field for `Annotated`: its texts for people, and its bounds. `fix` is the sentence for a refused
    value; `choices` are labels of the values of a Literal. `pattern` must match the whole text.
    """
    known: dict[str, Any] = {"fix": fix, "unit": unit, "choices": choices, **extra}
    return Field(
        title=label,
        description=help_text or None,
        ge=ge,
        le=le,
        pattern=None if pattern is None else f"^(?:{pattern})$",
        max_length=max_length,
        alias=alias,
        json_schema_extra={name: value for name, value in known.items() if value},
    )


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """A field of a definition. `name` is the one on the wire."""

    name: str
    info: FieldInfo = field(repr=False)
    # The type without None; of a list that of its items.
    kind: Any
    is_list: bool
    is_nullable: bool

    @property
    def label(self) -> str:
        return self.info.title or self.name

    @property
    def help(self) -> str:
        return self.info.description or ""

    @property
    def default(self) -> Any:
        return self.info.get_default(call_default_factory=True)

    @property
    def is_required(self) -> bool:
        return self.info.is_required()

    @property
    def extra(self) -> Mapping[str, Any]:
        extra = self.info.json_schema_extra
        return extra if isinstance(extra, Mapping) else {}

    @property
    def fix(self) -> str:
        return str(self.extra.get("fix", ""))

    @property
    def unit(self) -> str:
        return str(self.extra.get("unit", ""))

    @property
    def model(self) -> type[BaseModel] | None:
        """The definition that the field, or each of its items, has as its type."""
        is_model = isinstance(self.kind, type) and issubclass(self.kind, BaseModel)
        return self.kind if is_model else None

    @property
    def values(self) -> tuple[str, ...]:
        """The values of a Literal or of an enum, in its order."""
        if isinstance(self.kind, type) and issubclass(self.kind, StrEnum):
            return tuple(member.value for member in self.kind)
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def choices(self) -> Mapping[str, str]:
        """Value to label; a value without one is its own label."""
        labels: Mapping[str, str] = self.extra.get("choices", {})
        values = [*labels, *(value for value in self.values if value not in labels)]
        return {value: labels.get(value, value) for value in values}

    @property
    def minimum(self) -> Any:
        return self._bound(annotated_types.Ge, "ge")

    @property
    def maximum(self) -> Any:
        return self._bound(annotated_types.Le, "le")

    @property
    def max_length(self) -> int | None:
        length: int | None = self._bound(annotated_types.MaxLen, "max_length")
        return length

    def accepts(self, value: Any) -> bool:
        annotation: Any = Annotated[(self.info.annotation, Field(), *self.info.metadata)]
        try:
            TypeAdapter(annotation, config=ConfigDict(strict=True)).validate_python(value)
        except ValueError:
            return False
        return True

    def _bound(self, kind: type, name: str) -> Any:
        bounds = (getattr(item, name) for item in self.info.metadata if isinstance(item, kind))
        return next(bounds, None)


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, FieldDefinition]:
    """Return the fields by their names on the wire."""
    fields = (_field(info.alias or name, info) for name, info in model.model_fields.items())
    return {definition.name: definition for definition in fields}


@cache
def deep_fields_of(model: type[BaseModel], prefix: str = "") -> Mapping[str, FieldDefinition]:
    """Return the fields by dotted path, a part before its own fields. Elements of a list have no path."""
    fields: dict[str, FieldDefinition] = {}
    for name, definition in fields_of(model).items():
        fields[f"{prefix}{name}"] = definition
        if definition.model is not None and not definition.is_list:
            fields |= deep_fields_of(definition.model, f"{prefix}{name}.")
    return fields


def value_at(value: BaseModel, path: str) -> Any:
    """Return the value at a dotted path. None if a part of the path is not set."""
    inner: Any = value
    for name in path.split("."):
        inner = getattr(inner, name, None)
    return inner


def _field(name: str, info: FieldInfo) -> FieldDefinition:
    kinds = [kind for kind in get_args(info.annotation) if kind is not NoneType]
    is_nullable = NoneType in get_args(info.annotation)
    kind = kinds[0] if is_nullable else info.annotation
    is_list = get_origin(kind) in (tuple, list)
    item = get_args(kind)[0] if is_list else kind
    return FieldDefinition(name, info, item, is_list, is_nullable)
