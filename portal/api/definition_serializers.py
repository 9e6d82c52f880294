"""REST serializers of definitions (portal/core/definitions.py): type, default and help are theirs.

A value is refused by the definition, so that REST, YAML and pages give the same fix. What a
serializer refuses itself is what the definition has no sentence of its own for.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel
from rest_framework import serializers

from portal.api.base_serializer import Serializer
from portal.core import definitions
from portal.core.definitions import FieldDefinition

_NUMBERS: dict[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
}


# A docstring would become the description of the components below.
class DefinedSerializer(Serializer):
    definition: ClassVar[type[BaseModel]]

    def get_fields(self) -> dict[str, Any]:
        return {**_fields(self.definition), **super().get_fields()}


@cache
def serializer_of(model: type[BaseModel]) -> type[Serializer]:
    """Return a serializer named after the model. Fields that the portal sets (`read_only`) are only shown."""
    defaults = {name: field.default for name, field in definitions.fields_of(model).items()}
    attributes = {"definition": model, "same_as_left_out": defaults, "__doc__": model.__doc__}
    return type(f"{model.__name__}Serializer", (DefinedSerializer,), attributes)


def _fields(model: type[BaseModel]) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
    return {
        name: _field(definition)
        for name, definition in definitions.fields_of(model).items()
        if not definition.extra.get("is_stored")
    }


def _field(definition: FieldDefinition) -> serializers.Field[Any, Any, Any, Any]:
    options: dict[str, Any] = {"help_text": _describe(definition)} if definition.help else {}
    if definition.extra.get("read_only"):
        options["read_only"] = True
    elif definition.model is not None:
        return _nested(definition, definition.model)
    elif not definition.is_required:
        options |= _default(definition)
    if definition.extra.get("is_mapping"):
        return serializers.DictField(child=serializers.CharField(), **options)
    if definition.is_list:
        return _list(definition, options)
    return _value(definition, options)


def _list(
    definition: FieldDefinition, options: dict[str, Any]
) -> serializers.Field[Any, Any, Any, Any]:
    longest, most = (definition.extra.get(name) for name in ("longest_item", "most_items"))
    bounds = {"max_length": most} if most else {}
    child = _value(definition, {"max_length": longest} if longest else {})
    return serializers.ListField(child=child, **bounds, **options)


def _nested(
    definition: FieldDefinition, model: type[BaseModel]
) -> serializers.Field[Any, Any, Any, Any]:
    """The component describes itself; only a list says what it is here."""
    options: dict[str, Any] = {"required": definition.is_required}
    if definition.is_nullable:
        options["allow_null"] = True
    if definition.is_list:
        options |= {"many": True, "help_text": definition.help}
    return serializer_of(model)(**options)


def _describe(definition: FieldDefinition) -> str:
    """Return the description with the bounds that the definition checks. A percentage is a ratio here."""
    bounds = (definition.minimum, definition.maximum)
    if None in bounds or _bounds(definition) or bounds[0] == bounds[1]:
        return definition.help
    unit = "" if definition.unit == "%" else f" {definition.unit}".rstrip()
    return f"{definition.help} {bounds[0]} to {bounds[1]}{unit}."


def _default(definition: FieldDefinition) -> dict[str, Any]:
    """A default that depends on other fields (`is_derived`) is not stated."""
    if definition.extra.get("is_derived"):
        return {"required": False}
    if definition.extra.get("is_mapping"):
        return {"default": dict}
    return {"default": list if definition.is_list else definition.default}


def _value(
    definition: FieldDefinition, options: dict[str, Any]
) -> serializers.Field[Any, Any, Any, Any]:
    if definition.is_nullable:
        options["allow_null"] = True
    if definition.values:
        choices = [value for value in definition.values if value]
        return serializers.ChoiceField(choices=choices, **options, **_blank(definition))
    if definition.kind in _NUMBERS:
        return _NUMBERS[definition.kind](**options, **_bounds(definition))
    if definition.max_length is not None:
        options["max_length"] = definition.max_length
    return serializers.CharField(**options, **_blank(definition))


def _blank(definition: FieldDefinition) -> dict[str, Any]:
    extra = definition.extra
    if extra.get("is_blank_hidden") or extra.get("read_only"):
        return {}
    return {"allow_blank": True} if definition.accepts("") else {}


def _bounds(definition: FieldDefinition) -> dict[str, Any]:
    if definition.fix or definition.is_list:
        return {}
    bounds = {"min_value": definition.minimum, "max_value": definition.maximum}
    return {name: value for name, value in bounds.items() if value is not None}
