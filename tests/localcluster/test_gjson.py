"""Conditions: the subset of GJSON that the local cluster's router supports."""

from __future__ import annotations

from typing import Any

import pytest

from slipway_localcluster import gjson

REQUEST = {
    "id": "a.b",
    "parameters": {"pet": "cat", "strict": True, "none": None, "dotted.key": 1},
    "inputs": [
        {"name": "image", "shape": [2, 3], "data": [0.5, 7]},
        {"name": "mask", "shape": [1], "data": []},
    ],
    "words": ["red", "green-light"],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("@this", True),
        ("id", True),
        ("nothing", False),
        ("", False),
        ("parameters.pet", True),
        ("parameters.none", True),
        ("parameters.p*", True),
        ("parameters.x?", False),
        (r"parameters.dotted\.key", True),
        ("inputs.0.name", True),
        ("inputs.2", False),
        ("inputs.#", True),
        ("id.#", False),
        ("inputs.#.nothing", True),
        ('inputs.#(name=="image")', True),
        ('inputs.#(name="image")', True),
        ('inputs.#(name=="video")', False),
        ('inputs.#(name=="image").shape.1', True),
        ('inputs.#(name=="mask").shape.1', False),
        ('inputs.#(name!="image").name', True),
        ("inputs.#(shape.0>1)", True),
        ("inputs.#(shape.0>=3)", False),
        ("inputs.#(data.#(>5))", True),
        ("inputs.#(data.#(<=0.4))", False),
        ('inputs.#(name%"im*")', True),
        ('inputs.#(name!%"*a*")', False),
        ('inputs.#(name=="video")#', True),
        ('words.#(%"green*")', True),
        ('words.#(=="blue")', False),
        ('[@this].#(parameters.pet=="cat")', True),
        ('[@this].#(parameters.pet=="dog")', False),
        ("[@this].#(parameters.strict==true)", True),
        ('[@this].#(parameters.strict=="true")', False),
        ("[@this].#(parameters.none==null)", True),
        ('[@this].#(id=="a.b")', True),
        ('parameters.#(pet=="cat")', False),
    ],
)
def test_a_path_exists_or_not(path: str, *, expected: bool) -> None:
    assert gjson.exists(REQUEST, path) is expected


@pytest.mark.parametrize(
    "path", ["a|b", "@reverse", "{a,b}", "[a,b]", "a.@pretty", "a.#(b~true)", "a.#(b==~true)"]
)
def test_unsupported_syntax_is_refused(path: str) -> None:
    with pytest.raises(gjson.UnsupportedPath):
        gjson.parse(path)


def test_quoted_dots_and_operators_in_a_query_are_not_syntax() -> None:
    value: dict[str, Any] = {"a": [{"b": "x.y==(z"}]}
    assert gjson.exists(value, 'a.#(b=="x.y==(z")')
    assert not gjson.exists(value, 'a.#(b=="x.y==(")')
