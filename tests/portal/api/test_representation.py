"""Answers of the portal's serializers are those of Django REST framework, for every kind of field and value."""

from __future__ import annotations

import json
from collections import UserDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.utils.encoders import JSONEncoder

from portal.api.base_serializer import Serializer, choice_of, dollars


class Colour(StrEnum):
    RED = "red"


def _make(base: Any) -> Any:
    """The same serializer on either base."""

    class Inner(base):  # type: ignore[misc]  # a variable
        name = serializers.CharField(source="title")
        size = serializers.IntegerField(required=False)

    class Outer(base):  # type: ignore[misc]  # a variable
        text = serializers.CharField()
        number = serializers.IntegerField()
        share = serializers.FloatField()
        is_ready = serializers.BooleanField()
        colour = choice_of(Colour)
        level = serializers.ChoiceField(choices=[(1, "one"), (2, "two")])
        at = serializers.DateTimeField()
        day = serializers.DateTimeField(format="%Y-%m-%d")
        born = serializers.DateField()
        amount = dollars()
        names = serializers.ListField(child=serializers.CharField())
        facts = serializers.DictField()
        free = serializers.JSONField()
        deep = serializers.CharField(source="inner.title")
        inner = Inner()
        several = Inner(many=True)
        whole = serializers.SerializerMethodField()
        left_out = serializers.CharField(required=False)
        with_default = serializers.IntegerField(default=7)
        nothing = serializers.CharField(allow_null=True)
        called = serializers.CharField()
        secret = serializers.CharField(write_only=True)

        def get_whole(self, instance: Any) -> str:
            return type(instance).__name__

    return Outer


Ours, Theirs = _make(Serializer), _make(serializers.Serializer)


@dataclass
class Thing:
    title: str
    size: int = 3


def _values(**changes: Any) -> dict[str, Any]:
    return {
        "text": "ü <b>",
        "number": 5,
        "share": 0.5,
        "is_ready": True,
        "colour": "red",
        "level": 2,
        "at": datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC),
        "day": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "born": date(2026, 3, 1),
        "amount": Decimal("1.5"),
        "names": ["a", "b"],
        "facts": {"a": 1, "b": [None]},
        "free": {"deep": [{"x": None}]},
        "inner": Thing("one"),
        "several": [Thing("two"), {"title": "three"}],
        "nothing": None,
        "called": lambda: "answer",
        **changes,
    }


class _Object:
    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__ |= values


_OTHERS: dict[str, list[Any]] = {
    "text": ["", 5, None, Colour.RED, True],
    "number": ["5", True, 5.0, None],
    "share": [1, "1.5", Decimal(2), None],
    "is_ready": [1, 0, "false", "off", None],
    "colour": [Colour.RED, "", None, "blue"],
    "level": ["2", "", None, 9],
    "at": [
        datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta())),
        "2026-03-01",
        None,
    ],
    "born": [None, datetime(2026, 3, 1, tzinfo=UTC).date()],
    "amount": [Decimal("0.1234567"), "2", 3, None],
    "names": [(), [], ("a", None), ["a", None], ["a", 5], ["a", Colour.RED], None],
    "facts": [{}, {1: 2}, UserDict({"a": 1}), {Colour.RED: 1}, None],
    "inner": [{"title": 5, "size": "6"}, UserDict({"title": "t"}), None],
    "several": [[], None, (Thing("x"), Thing("y")), [{"title": 5, "size": None}, Thing("z")]],
    "called": [str, "text", None],
}


_CASES = [{}, *({name: other} for name, others in _OTHERS.items() for other in others)]


@pytest.mark.parametrize("kind", [dict, UserDict, _Object])
@pytest.mark.parametrize("changes", _CASES, ids=str)
def test_an_answer_is_that_of_the_framework(changes: dict[str, Any], kind: Any) -> None:
    instance = kind(_values(**changes))

    ours, theirs = (_answer(serializer, instance) for serializer in (Ours, Theirs))

    assert ours == theirs


@pytest.mark.parametrize("kind", [dict, _Object])
@pytest.mark.parametrize("name", ["text", "at", "inner", "nothing", "several"])
def test_a_missing_value_is_missing_as_in_the_framework(name: str, kind: Any) -> None:
    values = _values()
    del values[name]

    ours, theirs = (_answer(serializer, kind(values)) for serializer in (Ours, Theirs))

    assert ours == theirs


def test_values_of_one_answer_are_not_in_the_next() -> None:
    first = Ours(_values(text="first"), context={"a": 1}).data
    second = Ours([_values(text="second"), _values(number=9)], many=True).data

    assert first["text"] == "first"
    assert [(row["text"], row["number"]) for row in second] == [("second", 5), ("ü <b>", 9)]


def test_an_answer_is_not_what_was_read() -> None:
    """A change of the answer changes no row."""
    names, facts = ["a"], {"a": 1}
    answer = Ours(_Object(_values(names=names, facts=facts))).data

    answer["names"].append("b")
    answer["facts"]["b"] = 2

    assert (names, facts) == (["a"], {"a": 1})


def _answer(serializer: Any, instance: Any) -> str:
    """The text that is sent, or the error."""
    try:
        return json.dumps(serializer(instance).data, cls=JSONEncoder)
    except Exception as error:  # noqa: BLE001  compared with the framework's
        return f"{type(error).__name__}: {error}"


def _make_plain(base: Any) -> Any:
    """Most fields hold what is taken as it is, so that all are read at once."""

    class Plain(base):  # type: ignore[misc]  # a variable
        text = serializers.CharField()
        at = serializers.DateTimeField(required=False)
        number = serializers.IntegerField()
        is_ready = serializers.BooleanField()

    return Plain


@pytest.mark.parametrize("kind", [dict, _Object])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"number": None},
        {"text": None, "number": None, "is_ready": None},
        {"number": "5"},
        {"is_ready": 1},
        {"text": str},
        {"text": Colour.RED, "number": True},
    ],
    ids=str,
)
def test_values_that_are_read_at_once_are_those_of_the_framework(
    changes: dict[str, Any], kind: Any
) -> None:
    plain, framework = _make_plain(Serializer), _make_plain(serializers.Serializer)

    for _ in range(2):  # the second time their types are known
        for values in (_values(), _values(**changes)):
            without_time = {name: value for name, value in values.items() if name != "at"}
            for one in (values, without_time):
                ours, theirs = (_answer(cls, kind(one)) for cls in (plain, framework))
                assert ours == theirs
                if isinstance(ours, dict):
                    assert list(ours) == list(theirs)
