"""The decoding of the portal's JSON into the dataclasses of `types`.

Fields that a newer portal adds are ignored; a field that is missing or of another type is an error that names it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, TypeVar, Union, cast

from slipway_client.errors import UnexpectedAnswer

T = TypeVar("T")


def decode(kind: type[T], value: object, place: str = "") -> T:
    """Decode a value as `kind`, a dataclass. `place` names the value in errors."""
    if not isinstance(value, Mapping):
        raise UnexpectedAnswer(f"{place or kind.__name__}: expected an object, got {value!r}.")
    fields = {}
    for name, hint in _hints(cast("Hashable", kind)).items():
        if name == "raw":
            fields[name] = dict(value)
        elif name in value:
            fields[name] = _decode(hint, value[name], f"{place}.{name}" if place else name)
        elif name not in _optional(cast("Hashable", kind)):
            raise UnexpectedAnswer(f"{place or kind.__name__} has no field {name!r}.")
    return kind(**fields)


def _decode(hint: Any, value: object, place: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _decode(next(kind for kind in arguments if kind is not types.NoneType), value, place)
    if origin is tuple:
        return _decode_list(arguments[0], value, place)
    if origin in (Mapping, dict):
        return dict(_of_type(Mapping, value, place))
    if dataclasses.is_dataclass(hint):
        return decode(cast("type[Any]", hint), value, place)
    return _decode_plain(hint, value, place)


def _decode_list(item: Any, value: object, place: str) -> tuple[Any, ...]:
    listed = _of_type(list, value, place)
    return tuple(_decode(item, element, f"{place}[{n}]") for n, element in enumerate(listed))


def _decode_plain(hint: Any, value: object, place: str) -> Any:
    parsers: dict[Any, Callable[[str], Any]] = {
        datetime: datetime.fromisoformat,
        date: date.fromisoformat,
        Decimal: Decimal,
    }
    if hint in parsers:
        try:
            return parsers[hint](str(value))
        except (ValueError, InvalidOperation) as error:
            raise UnexpectedAnswer(f"{place}: expected {hint.__name__}, got {value!r}.") from error
    if hint is Any:
        return value
    if hint is float:
        return float(_of_type((int, float), value, place))
    return _of_type(hint, value, place)


def _of_type(kind: Any, value: object, place: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UnexpectedAnswer(f"{place}: expected {_name_of(kind)}, got {value!r}.")
    return value


def _name_of(kind: Any) -> str:
    return "a number" if isinstance(kind, tuple) else str(kind.__name__)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@cache
def _optional(kind: Hashable) -> frozenset[str]:
    return frozenset(
        field.name
        for field in dataclasses.fields(cast("type[Any]", kind))
        if field.default is not dataclasses.MISSING
        or field.default_factory is not dataclasses.MISSING
    )
