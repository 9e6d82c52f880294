"""What people read on pages: the patterns of `language` that can be told from the text alone are refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.architecture.test_architecture import ROOT, sources

# A help is read below its label, yet by itself: "Of each pod" needs the label.
_FRAGMENT: Final = re.compile(r"(Of|As|That|Those|Else|Whether|Whom) ")
_REFUSED: Final = {
    r"\b(Empty|Not set|None selected): ": "write “Leave empty for …” or “Default: …”",
    r"\bany ?more\b": "write “no longer”",
    r"\bby (itself|themselves)\b": "write “automatically”",
    r"\bfor so long\b|\bas many that\b|\bfor as many\b": "name the time or the number",
    r"\bthe tab [A-Z]": "write “the Callers tab”",
    r"\b(Whom|[Ww]hoever|[Ss]omebody)\b": "write “someone” or “anyone”",
    r"\bis there twice\b": "write “appears twice”",
    r"\bnot known here\b": "say what is unknown to whom",
    r"\ball the same\b": "write “anyway”",
    r"[a-z]\(s\)": "write the plural by the number",
    r"\d %(?![\w({])|\}\} %(?![\w({])": "join the percent sign: 10%",
    r"\bis no (valid|Kubernetes|JSON|YAML)\b|\bor no number\b": "write “is not a …”",
}
# What people read elsewhere: columns of the API, logs, lines of programs.
_ELSEWHERE: Final = re.compile(
    r"/(api|gateways|migrations|management)/|^(client|localcluster|demo)/"
)


def list_refused(text: str) -> list[str]:
    """List what is refused in a text, with what to write instead."""
    return [
        f"{found[0]!r}: {instead}"
        for pattern, instead in _REFUSED.items()
        if (found := re.search(pattern, text))
    ]


def list_texts(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that a page could show, by line: those of several words that are no docstring."""
    documented = {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    parts = {
        id(part)
        for node in ast.walk(module)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.expr):
            continue
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in documented | parts else node.value
        if " " in text.strip():
            yield node.lineno, text


def list_helps(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the help texts of form fields and of settings, by line."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        helps = [word.value for word in node.keywords if word.arg == "help_text"]
        if isinstance(node.func, ast.Name) and node.func.id == "setting":
            helps += node.args[1:2]
        for text in helps:
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text.lineno, text.value


def words_of_template(source: str) -> str:
    """Return the text of a template without comments, tags and their attributes."""
    source = re.sub(r"\{#.*?#\}|\{% comment.*?endcomment %\}", "", source, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", re.sub(r"\{%.*?%\}", "", source))


def test_no_page_uses_a_refused_pattern() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {refused}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for refused in list_refused(words_of_template(path.read_text()))
    ]
    for path in sources():
        name = str(path.relative_to(ROOT))
        if name.startswith(("deployments", "fleet", "portal")) and not _ELSEWHERE.search(name):
            module = ast.parse(path.read_text())
            found += [
                f"{name}:{line}: {refused}"
                for line, text in list_texts(module)
                for refused in list_refused(text)
            ]

    assert found == []


def test_no_help_text_needs_its_label() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sources()
        if not _ELSEWHERE.search(str(path.relative_to(ROOT)))
        for line, text in list_helps(ast.parse(path.read_text()))
        if _FRAGMENT.match(text)
    ]

    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "Empty: none.",
        "The chosen GPU is not offered any more.",
        "Drains nodes by itself.",
        "A worker ends when there was no message for so long.",
        "The tab is set on the tab Callers.",
        "Somebody changed it.",
        "The path is there twice.",
        "3 node(s) wait",
        "5 % of the traffic",
        "{{ share }} % of the traffic",
        "X is no Kubernetes name",
    ],
)
def test_a_planted_pattern_is_refused(text: str) -> None:
    assert len(list_refused(text)) == 1


def test_what_reads_well_is_let_through() -> None:
    text = "Leave empty for none. 5% of 3 nodes; {{ share }}% of them are no longer there."

    assert list_refused(text) == []
    assert words_of_template("{# a #}<p title='b'>{% if c %}d{% endif %}</p>").split() == ["d"]


def test_texts_and_helps_are_found_in_code() -> None:
    module = ast.parse(
        '"""A b."""\nx = f"c {d} e"\nsetting("L", "Of it.")\nF(help_text="As is.")\n'
    )

    assert list(list_texts(module)) == [(2, "c {} e"), (3, "Of it."), (4, "As is.")]
    assert list(list_helps(module)) == [(3, "Of it."), (4, "As is.")]
