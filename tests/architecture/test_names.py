"""A function is named by a verb with its object, and a class by a noun that no other of its app has."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.architecture.test_architecture import PACKAGES, ROOT, sources

# Verbs and nouns that end like a participle.
_ENDS_LIKE_ONE = frozenset(["embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"])
_IRREGULAR = frozenset(
    [
        "begun",
        "bought",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "driven",
        "fallen",
        "found",
        "frozen",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "met",
        "paid",
        "seen",
        "sent",
        "shown",
        "sold",
        "spent",
        "taken",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "unknown",
        "won",
        "written",
    ]
)
# "found in", "joined to": a preposition adds no object.
_PREPOSITIONS = frozenset(
    ["as", "at", "by", "for", "from", "in", "into", "of", "off", "on", "out", "to", "with"]
)
# "let in" is its own participle, and is a verb in "let_run".
_WHOLE = frozenset(["let", "let_in", "put_up", "set_by"])
# Django looks for these by their names.
_CONVENTIONS = frozenset(["Command", "Config", "Meta", "Migration"])
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def list_nameless(text: str) -> list[str]:
    """List the public functions and methods of a module that are named `of_…` or by a lone participle.

    A property may be one, as a dataclass field may: both say in which state an object is. So may a
    filter or tag of templates, which says what becomes of a value.
    """
    return [
        f"{function.lineno}: {function.name}"
        for function in _public_functions(ast.parse(text).body)
        if is_nameless(function.name) and not _is_state(function)
    ]


def is_nameless(name: str) -> bool:
    first, *others = name.split("_")
    return (
        first == "of"
        or name in _WHOLE
        or (is_participle(first) and all(word in _PREPOSITIONS for word in others))
    )


def is_participle(word: str) -> bool:
    return (word.endswith("ed") and word not in _ENDS_LIKE_ONE) or word in _IRREGULAR


def list_homonyms(files: Mapping[Path, str]) -> dict[str, list[str]]:
    """Map each name that several public classes of one app have to the files of these."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, text in files.items():
        for name in _public_classes(ast.parse(text).body):
            places[_app(path), name].append(str(path))
    return {f"{app}: {name}": found for (app, name), found in places.items() if len(found) > 1}


def _public_functions(body: list[ast.stmt]) -> Iterator[_Function]:
    for node in body:
        if isinstance(node, _Function) and not node.name.startswith("_"):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public_functions(node.body)


def _public_classes(body: list[ast.stmt]) -> Iterator[str]:
    names = [node.name for node in body if isinstance(node, ast.ClassDef)]
    yield from (name for name in names if name[0] != "_" and name not in _CONVENTIONS)


def _is_state(function: _Function) -> bool:
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any("property" in name or name.startswith("register.") for name in decorators)


def _app(path: Path) -> str:
    return next(package for package in PACKAGES if path.is_relative_to(package))


def _texts() -> dict[Path, str]:
    return {path.relative_to(ROOT): path.read_text() for path in sources()}


def test_every_function_is_named_by_a_verb() -> None:
    found = {
        str(path): nameless for path, text in _texts().items() if (nameless := list_nameless(text))
    }

    assert found == {}


def test_no_two_classes_of_an_app_have_one_name() -> None:
    public = {
        path: text
        for path, text in _texts().items()
        if not any(re.match(r"_(?!_)", part) for part in path.parts)
    }

    assert list_homonyms(public) == {}


@pytest.mark.parametrize(
    "name",
    ["of", "of_teams", "kept", "taken", "joined", "unknown", "let_in", "found_in", "prolonged"],
)
def test_a_function_without_a_verb_is_refused(name: str) -> None:
    module = f"""
def {name}() -> None: ...

class Budget:
    async def {name}(self) -> None: ...
"""

    assert list_nameless(module) == [f"2: {name}", f"5: {name}"]


@pytest.mark.parametrize(
    "name",
    ["merge_claims", "price_of", "seed", "needed_labels", "read_by_name", "open", "put", "let_run"],
)
def test_a_function_with_a_verb_or_an_object_is_not(name: str) -> None:
    assert list_nameless(f"def {name}() -> None: ...") == []


@pytest.mark.parametrize(
    "module",
    [
        "def _kept() -> None: ...",
        "class _Row:\n    def kept(self) -> None: ...",
        "class Row:\n    @property\n    def kept(self) -> bool: ...",
        "class Row:\n    kept: bool",
        "@register.filter\ndef known(value: str) -> str: ...",
        "def keep() -> None:\n    def kept() -> None: ...",
    ],
)
def test_what_is_private_or_a_state_is_not(module: str) -> None:
    assert list_nameless(module) == []


def test_two_classes_of_one_name_are_refused() -> None:
    files = {
        Path("fleet/costs/ledger.py"): "class Part: ...",
        Path("fleet/gpus/board.py"): "class Part: ...\nclass _Row: ...",
        Path("fleet/gpus/rows.py"): "class _Row: ...\nclass Meta: ...",
    }

    assert list_homonyms(files) == {"fleet: Part": ["fleet/costs/ledger.py", "fleet/gpus/board.py"]}


def test_classes_of_two_apps_or_inside_of_others_are_not() -> None:
    files = {
        Path("fleet/costs/ledger.py"): "class Part:\n    class Meta: ...\n    class Row: ...",
        Path("portal/ui/board.py"): "class Part:\n    class Meta: ...",
        Path("fleet/gpus/rows.py"): "class Row: ...\nclass Command: ...",
        Path("fleet/gpus/more.py"): "class Command: ...",
    }

    assert list_homonyms(files) == {}
