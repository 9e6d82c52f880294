"""Bodies and queries are validated by a serializer that is kept: nothing of one request is in the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.http import QueryDict
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from portal.api.base_serializer import Serializer
from portal.api.requests import read_query


class _Query(Serializer):
    name = serializers.CharField(max_length=5)
    words = serializers.ListField(child=serializers.CharField(), default=list)
    size = serializers.IntegerField(required=False)

    def validate_name(self, value: str) -> str:
        if value == "no":
            raise serializers.ValidationError("Use another.")
        return value


def _read(query: str) -> dict[str, Any]:
    return read_query(_Query, Request(APIRequestFactory().get(f"/?{query}")))


def test_values_are_of_their_own_request() -> None:
    first = _read("name=a&size=3")
    first["words"].append("of the first")

    assert _read("name=b&words=x&words=y") == {"name": "b", "words": ["x", "y"]}
    assert _read("name=c") == {"name": "c", "words": []}


@pytest.mark.parametrize(
    "query", ["", "name=", "name=longer", "name=no", "name=a&size=x", "name=a&nmae=b", "name=a&b=1"]
)
def test_refusals_are_those_of_a_serializer_of_its_own(query: str) -> None:
    own = _Query(data=QueryDict(query))
    assert not own.is_valid()

    for _ in range(2):
        with pytest.raises(serializers.ValidationError) as refusal:
            _read(query)
        assert refusal.value.detail == own.errors
        assert _read("name=a") == {"name": "a", "words": []}


def _serializers(base: type[Serializer] = Serializer) -> Iterator[type[Serializer]]:
    for found in base.__subclasses__():
        yield found
        yield from _serializers(found)


def _fields(fields: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, field in fields.items():
        yield f"{path}.{name}", field
        inner = getattr(field, "child", None)
        yield from _fields({"child": inner} if inner else {}, f"{path}.{name}")


def test_no_default_can_be_changed_by_who_gets_it() -> None:
    """One request would change what the next one leaves out."""
    import_module(settings.ROOT_URLCONF)
    found = {
        path: field.default
        for kind in _serializers()
        for path, field in _fields(kind._declared_fields, f"{kind.__module__}.{kind.__name__}")
        if not isinstance(field.default, Hashable)
    }

    assert found == {}
