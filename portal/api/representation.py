"""Answers of serializers, field by field as Django REST framework gives them, with less work for each row.

The framework copies all fields for each serializer and checks each value several times. Here the fields of a
class are made once, and a value that is already what the field would make of it is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Final

from rest_framework import serializers
from rest_framework.fields import Field, SkipField, _UnvalidatedField

Reader = Callable[[Any, Any], Any]
_MISSING = object()
_MOST_FITTING: Final = 64
_KEPT_AS_THEY_ARE = {
    serializers.CharField: str,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.BooleanField: bool,
}


@dataclass(frozen=True, slots=True)
class _Field:
    """`kind` is the type of values that are taken as they are; None if none are."""

    name: str
    attribute: str
    kind: type | None
    read: Reader
    # As `read`, for an instance that is no mapping.
    read_attribute: Reader


@dataclass(frozen=True, slots=True)
class _Fields:
    """The readable fields of a class. They keep no state of an answer, so that all threads share them.

    `take` reads the attributes of all fields that have a `kind` at once; `fitting` has the types of such values that
    were all taken as they are.
    """

    all: tuple[_Field, ...]
    names: tuple[str, ...]
    take: Callable[[Any], tuple[Any, ...]] | None
    others: tuple[tuple[str, Reader], ...]
    blank: dict[str, Any]
    fitting: set[tuple[type, ...]]


def represent(serializer: serializers.Serializer[Any], instance: Any) -> dict[str, Any]:
    fields = _fields_of(type(serializer))
    if _is_mapping(instance.__class__):
        return _represent_mapping(serializer, instance, fields)
    taken = _take(fields, instance)
    if taken is None:
        return _represent_each(serializer, instance, fields.all)
    values = fields.blank.copy()
    values.update(zip(fields.names, taken, strict=True))
    for name, read in fields.others:
        try:
            values[name] = read(serializer, instance)
        except SkipField:
            del values[name]
    return values


def _represent_mapping(
    serializer: serializers.Serializer[Any], instance: Any, fields: _Fields
) -> dict[str, Any]:
    if instance.__class__ is not dict:
        return _represent_each(serializer, instance, fields.all)
    values = {}
    for field in fields.all:
        if field.kind is not None:
            value = instance.get(field.attribute)
            if value.__class__ is field.kind:
                values[field.name] = value
                continue
        try:
            values[field.name] = field.read(serializer, instance)
        except SkipField:
            continue
    return values


def _represent_each(
    serializer: serializers.Serializer[Any], instance: Any, fields: Iterable[_Field]
) -> dict[str, Any]:
    values = {}
    for field in fields:
        if field.kind is not None:
            value = getattr(instance, field.attribute, _MISSING)
            if value is None or value.__class__ is field.kind:
                values[field.name] = value
                continue
        try:
            values[field.name] = field.read(serializer, instance)
        except SkipField:
            continue
    return values


def _take(fields: _Fields, instance: Any) -> tuple[Any, ...] | None:
    """None unless each value is taken as it is."""
    if fields.take is None:
        return None
    try:
        taken = fields.take(instance)
    except AttributeError:
        return None  # a mapping, a default or an omission
    kinds = tuple(map(type, taken))
    if kinds in fields.fitting:
        return taken
    expected = [field.kind for field in fields.all if field.kind is not None]
    pairs = zip(kinds, expected, strict=True)
    if not all(kind is type(None) or kind is one for kind, one in pairs):
        return None
    if len(fields.fitting) < _MOST_FITTING:
        fields.fitting.add(kinds)
    return taken


@cache
def _fields_of(kind: type[serializers.Serializer[Any]]) -> _Fields:
    every = tuple(
        _Field(str(field.field_name), *_taken(field), read, _attribute_reader(field, read))
        for field, read in ((field, _reader(field)) for field in kind()._readable_fields)
    )
    plain = [field for field in every if field.kind is not None]
    attributes = [field.attribute for field in plain]
    return _Fields(
        all=every,
        names=tuple(field.name for field in plain),
        # Of one attribute it gives no tuple.
        take=attrgetter(*attributes) if len(attributes) > 1 else None,
        others=tuple((field.name, field.read_attribute) for field in every if field.kind is None),
        blank=dict.fromkeys(field.name for field in every),
        fitting=set(),
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


def _attribute_reader(field: Field[Any, Any, Any, Any], read: Reader) -> Reader:
    """`read`, with less work for values of the usual types."""
    quick = _quick_converter(field)
    if quick is None or len(field.source_attrs) != 1:
        return read
    get = attrgetter(str(field.source_attrs[0]))

    def read_attribute(serializer: Any, instance: Any) -> Any:
        try:
            value = get(instance)
        except AttributeError:
            return read(serializer, instance)
        if value is None:
            return None
        converted = quick(value)
        return read(serializer, instance) if converted is _MISSING else converted

    return read_attribute


def _quick_converter(field: Field[Any, Any, Any, Any]) -> Callable[[Any], Any] | None:
    """Gives _MISSING for what it leaves to the field. None if it would for each value."""
    kind, child = type(field), getattr(field, "child", None)
    if kind is serializers.DateTimeField and not hasattr(field, "format"):
        return lambda value: _utc(value) or _MISSING
    if kind is serializers.DictField and type(child) is _UnvalidatedField:
        return _same_dict
    if kind is serializers.ListField and type(child) is serializers.CharField:
        return _same_texts
    if kind is serializers.ListSerializer and child is not None:
        represent_one = child.to_representation
        return lambda rows: [*map(represent_one, rows)] if type(rows) is list else _MISSING
    return None


def _same_dict(value: Any) -> Any:
    is_same = type(value) is dict and all(type(key) is str for key in value)
    return value.copy() if is_same else _MISSING


def _same_texts(value: Any) -> Any:
    is_same = type(value) is list and all(type(text) is str for text in value)
    return value.copy() if is_same else _MISSING


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
