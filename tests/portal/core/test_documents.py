"""What people send as JSON or YAML: small and plain, or refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portal.core import documents
from portal.core.documents import Bounds, UnreadableDocument

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def refusal(read: Any, text: str | bytes, **bounds: Any) -> UnreadableDocument:
    with pytest.raises(UnreadableDocument) as refused:
        read(text, Bounds(**bounds)) if bounds else read(text)
    return refused.value


def test_a_few_hundred_bytes_of_aliases_are_not_expanded() -> None:
    assert len(BOMB) < 500
    assert refusal(documents.read_yaml, BOMB).message == (
        "Line 1: aliases and anchors (* and &) are not supported. Write out the value."
    )
    assert refusal(documents.read_yaml, "a: [x]\nb: *a").message.startswith("Line 2: aliases")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("spec:\n  gpus: .inf", "spec.gpus", "NaN and infinity"),
        ("spec:\n  gpus: -.INF", "spec.gpus", "NaN and infinity"),
        ("a: [1, .nan]", "a.1", "NaN and infinity"),
        ("a: 1e999", "a", "NaN and infinity"),
        ("a: 1e300", "a", "too large"),
        ("a: 9223372036854775808", "a", "too large"),
        ("a: " + "9" * 5000, "a", "more than 20 digits"),
        ('a: "\\ud800"', "a", "half a character"),
        ('a: "x\\0"', "a", "NUL"),
        ('a: {"\\ud800": 1}', "a", "half a character"),
    ],
)
def test_a_value_that_nothing_can_hold_is_named_by_its_place(
    text: str, place: str, message: str
) -> None:
    refused = refusal(documents.read_yaml, text)

    assert (refused.place, refused.is_syntax) == (place, False)
    assert message in refused.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 19_000, "more than 20 levels"),
        ("- " * 9_000, "more than 20 levels"),
        ("{a: " * 4_000, "more than 20 levels"),
        ("? " * 9_000, "more than 20 levels"),
        ("a: [" + "[],\n " * 6_000 + "]", "more than 5,000 values"),
        ("x" * 40_001, "40,001 bytes"),
        ("a: 1\nb: 2\na: 3", "Line 3: a is defined twice"),
        ("1: x", "Line 1: write the name as text"),
        ("no: x", "Line 1: write the name as text"),
        ("[a]: x", "Line 1: write the name as text"),
        ("a: !!python/object:os.system {}", "Line 1: tags"),
        ("a: !!binary aGk=", "Line 1: tags"),
        ("a: 1\n---\nb: 1", "Invalid YAML in line 2"),
        ("a: b: c", "Invalid YAML in line 1"),
        ('a: "\\U00110000"', "Invalid YAML"),
        ('a: "\\UFFFFFFFF"', "Invalid YAML"),
        ("a: \0", "character 4 is not allowed"),
        (b"a: \xff", "Invalid YAML"),
        ("a: \ud800", "half a character"),
    ],
    ids=lambda value: str(value)[:20].encode("ascii", "backslashreplace").decode(),
)
def test_a_document_out_of_bounds_is_refused(text: str | bytes, message: str) -> None:
    assert message in refusal(documents.read_yaml, text).message


def test_dates_and_odd_numbers_stay_the_text_that_they_are() -> None:
    text = "a: 2026-99-99\nb: 2026-01-02\nc: 1:30\nd: 0777\ne: 0x1F\nf: '5'"

    assert documents.read_yaml(text) == {
        "a": "2026-99-99",
        "b": "2026-01-02",
        "c": "1:30",
        "d": "0777",
        "e": "0x1F",
        "f": "5",
    }


def test_plain_yaml_is_read_as_everywhere() -> None:
    text = (
        "a: [1, -2, 2.5, 1e3, .5]\nb: {c: yes, d: off, e: true}\nf: ~\ng:\nh: |\n  two\n  lines\n"
    )

    assert documents.read_yaml(text) == {
        "a": [1, -2, 2.5, 1000.0, 0.5],
        "b": {"c": True, "d": False, "e": True},
        "f": None,
        "g": None,
        "h": "two\nlines\n",
    }


@pytest.mark.parametrize(
    ("text", "place", "message", "is_syntax"),
    [
        ('{"a": [1, {"b": "\\ud800"}]}', "a.1.b", "half a character", False),
        ('{"a": "\\u0000"}', "a", "NUL", False),
        ('{"a": {"\\u0000": 1}}', "a", "NUL", False),
        ('{"a": 1e999}', "a", "NaN and infinity", False),
        ('{"a": NaN}', "a", "NaN and infinity", False),
        ('{"a": -Infinity}', "a", "NaN and infinity", False),
        ('{"a": 18446744073709551616}', "a", "too large", False),
        ('{"a": ' + "9" * 5_000 + "}", "a", "more than 20 digits", False),
        ("[" * 65 + "]" * 65, ".".join("0" * 64), "64 levels", True),
        ("[" * 500_000, "", "64 levels", True),
        ('{"a": ' * 400_000, "", "64 levels", True),
        ("{", "", "Invalid JSON", True),
        (b"\xff", "", "UTF-8", True),
        ('"' + "x" * 3_000_000 + '"', "", "3,000,002 bytes", True),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_is_bounded_alike(text: str, place: str, message: str, is_syntax: bool) -> None:
    refused = refusal(documents.read_json, text)

    assert (refused.place, refused.is_syntax) == (place, is_syntax)
    assert message in refused.message


def test_what_lies_at_a_bound_is_read() -> None:
    deepest = "[" * 64 + "]" * 64
    numbers = [2**64 - 1, -(2**64 - 1), 1.7e308, -1.7e308]

    assert json.dumps(documents.read_json(deepest)) == deepest
    assert documents.read_json(json.dumps(numbers)) == numbers
    assert documents.read_yaml("[9223372036854775807, -9223372036854775807]")[0] == 2**63 - 1
    assert documents.read_json('["\\u0000"]', Bounds(may_hold_nul=True)) == ["\0"]
    assert documents.read_json('["\\ud83c\\udf4e"]') == ["\U0001f34e"]
    assert len(documents.read_json(json.dumps([0] * 9), Bounds(most_values=10))) == 9
    too_many = refusal(documents.read_json, json.dumps([0] * 10), most_values=10)
    assert too_many.message == "It contains more than 10 values."


def test_a_hostile_name_is_not_repeated_in_the_place() -> None:
    refused = refusal(documents.read_json, '{"a\\n\\u202e": {"b": NaN}, "c": 1}')

    assert refused.place == "a.b"
