"""Answers of serializers, field by field as Django REST framework gives them, with less work for each row.

The framework copies all fields for each serializer and checks each value several times. Here the fields of a
class are made once, and a value that is already what the field would make of it is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from rest_framework import serializers
from rest_framework.fields import Field, SkipField

Reader = Callable[[Any, Any], Any]
_MISSING = object()
_KEPT_AS_THEY_ARE = {
    serializers.CharField: str,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.BooleanField: bool,
}


def represent(serializer: serializers.Serializer[Any], instance: Any) -> dict[str, Any]:
    values = {}
    for name, attribute, kind, read in _readers(type(serializer)):
        if kind is not None:
            value = getattr(instance, attribute, _MISSING)
            if value is None or value.__class__ is kind:
                values[name] = value
                continue
        try:
            values[name] = read(serializer, instance)
        except SkipField:
            continue
    return values


@cache
def _readers(
    kind: type[serializers.Serializer[Any]],
) -> tuple[tuple[str, str, type | None, Reader], ...]:
    """The readable fields, each with the attribute and type of values that are taken as they are. They keep
    no state of an answer, so that all threads share them.
    """
    return tuple(
        (str(field.field_name), *_taken(field), _reader(field)) for field in kind()._readable_fields
    )


def _taken(field: Field[Any, Any, Any, Any]) -> tuple[str, type | None]:
    """A mapping has no attribute of such a type, so that its keys are never taken for methods."""
    is_plain = type(field) is not serializers.SerializerMethodField and len(field.source_attrs) == 1
    return (str(field.source_attrs[0]), _kept_type(field)) if is_plain else ("", None)


def _kept_type(field: Field[Any, Any, Any, Any]) -> type | None:
    if type(field) is serializers.ChoiceField and all(type(key) is str for key in field.choices):
        return str
    return _KEPT_AS_THEY_ARE.get(type(field))


def _reader(field: Field[Any, Any, Any, Any]) -> Reader:
    if type(field) is serializers.SerializerMethodField:
        method = str(field.method_name)
        return lambda serializer, instance: getattr(serializer, method)(instance)
    if len(field.source_attrs) == 0:
        return lambda _, instance: _converted(field, field.get_attribute(instance))
    names, convert = tuple(field.source_attrs), _converter(field)

    def read(_: Any, instance: Any) -> Any:
        value = instance
        try:
            for name in names:
                value = value[name] if _is_mapping(value.__class__) else getattr(value, name)
        except (KeyError, AttributeError):
            value = field.get_attribute(instance)  # a default, an omission, or the error
        return convert(field.get_attribute(instance) if callable(value) else value)

    return read


@cache
def _is_mapping(kind: type) -> bool:
    return issubclass(kind, Mapping)


def _converter(field: Field[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    kind = _kept_type(field)
    if kind is not None:
        return lambda value: value if type(value) is kind else _converted(field, value)
    if type(field) is serializers.DateTimeField and not hasattr(field, "format"):
        return lambda value: _utc(value) or _converted(field, value)
    return lambda value: _converted(field, value)


def _converted(field: Field[Any, Any, Any, Any], value: Any) -> Any:
    return None if value is None else field.to_representation(value)


def _utc(value: Any) -> str:
    """Empty for anything but a time in UTC, the time zone of the portal."""
    if type(value) is not datetime:
        return ""
    text = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else ""
