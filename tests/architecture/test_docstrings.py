"""A docstring can be read without the name above it: it begins with a verb, or with what it is about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_architecture import ROOT, sources

# Each begins a fragment that needs the name above it: "Of the teams …", "None while …".
_FRAGMENTS = frozenset(
    [
        "Also",
        "As",
        "By",
        "Else",
        "Empty",
        "For",
        "From",
        "In",
        "None",
        "Of",
        "On",
        "Only",
        "That",
        "Those",
        "What",
        "Where",
        "With",
        "Without",
    ]
)
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def list_fragments(text: str) -> list[str]:
    """List the docstrings of a module that are fragments or say nothing, by line."""
    return [
        f"{line}: {docstring.splitlines()[0]}"
        for line, docstring in _docstrings(ast.parse(text))
        if _is_fragment(docstring)
    ]


def _docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module):
        if isinstance(node, _Documented):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                yield node.body[0].lineno, docstring or " "


def _is_fragment(docstring: str) -> bool:
    first = re.match(r"[A-Za-z]+", docstring)
    return not docstring.strip(" .…") or (first is not None and first[0] in _FRAGMENTS)


def test_every_docstring_stands_on_its_own() -> None:
    found = {
        str(path.relative_to(ROOT)): fragments
        for path in [*sources(), *_migrations()]
        if (fragments := list_fragments(path.read_text()))
    }

    assert found == {}


def _migrations() -> Iterator[Path]:
    for package in ("portal", "deployments", "fleet"):
        yield from (ROOT / package).glob("**/migrations/**/*.py")


def list_fields(text: str) -> list[str]:
    """List the descriptions of REST in a module that need the name of their field, by line."""
    return [
        f"{word.value.lineno}: {word.value.value}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in ("help_text", "description")
        and isinstance(word.value, ast.Constant)
        and isinstance(word.value.value, str)
        and _needs_its_name(word.value.value)
    ]


def _needs_its_name(text: str) -> bool:
    """Tell whether it is a fragment. A special case alone is a sentence: "Null if unknown.", "Empty for a queue."."""
    first = text.partition(" ")[0]
    return first not in ("Null", "Empty") and first.strip(":;,").capitalize() in {
        *_FRAGMENTS,
        "Null",
    }


def test_every_description_of_rest_stands_on_its_own() -> None:
    found = {
        str(path.relative_to(ROOT)): fragments
        for path in sources()
        if "api" in path.parts and (fragments := list_fields(path.read_text()))
    }

    assert found == {}


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("of the file", True),
        ("null: unknown", True),
        ("empty: all teams", True),
        ("what to do", True),
        ("Null if unknown.", False),
        ("SHA-256 of the file.", False),
    ],
)
def test_a_description_needs_no_name(text: str, is_refused: bool) -> None:
    found = list_fields(f'path = CharField(help_text="{text}")')

    assert bool(found) is is_refused


@pytest.mark.parametrize(
    "docstring",
    [
        "…",
        "...",
        "",
        "Of the teams that the costs are of.",
        "None while something else is to be pushed.",
        "As kubectl writes it.",
        "Without those that warmed up.",
        "Those of a pod.",
        "What is invalid, by field.",
    ],
)
def test_a_fragment_is_refused(docstring: str) -> None:
    module = f'"""Costs of teams."""\n\n\ndef sum_up() -> None:\n    """{docstring}"""\n'

    assert [line.partition(":")[0] for line in list_fragments(module)] == ["5"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Sum the monthly budgets of the shown teams. None if a cost has no budget.",
        "A deployment that a step may call.",
        "Format a number, without zeros at its end.",
        "Online users of the last minute.",
    ],
)
def test_a_sentence_is_not(docstring: str) -> None:
    assert list_fragments(f'class Budget:\n    """{docstring}"""\n') == []
