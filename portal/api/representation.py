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
_KEPT_AS_THEY_ARE = {
    serializers.CharField: str,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.BooleanField: bool,
}


def represent(serializer: serializers.Serializer[Any], instance: Any) -> dict[str, Any]:
    values = {}
    for name, read in _readers(type(serializer)):
        try:
            values[name] = read(serializer, instance)
        except SkipField:
            continue
    return values


@cache
def _readers(kind: type[serializers.Serializer[Any]]) -> tuple[tuple[str, Reader], ...]:
    """The readable fields. They keep no state of an answer, so that all threads share them."""
    return tuple((str(field.field_name), _reader(field)) for field in kind()._readable_fields)


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
    kind = _KEPT_AS_THEY_ARE.get(type(field))
    if type(field) is serializers.ChoiceField and all(type(key) is str for key in field.choices):
        kind = str
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
