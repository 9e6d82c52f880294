"""What no template may hold: inline style or script, undefined classes, remote addresses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
CSS = "".join(path.read_text() for path in (ROOT / "static/css").glob("*.css"))
JS = "".join(path.read_text() for path in (ROOT / "static/js").glob("*.js"))
DEFINED = set(re.findall(r"\.([a-zA-Z][\w-]*)", CSS))


def _plain(text: str) -> str:
    return re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", " ", text, flags=re.DOTALL)


_REFUSED = (
    r"\sstyle\s*=",
    r"<style\b",
    r"\son\w+\s*=",
    r"hx-on|hx-vals=['\"]js:",
    r"(src|href)=\"(https?:)?//",
)
_SCRIPT_OF_ITS_OWN = r"<script(?![^>]*\b(src|type=\"application/json\"))"


def _unfit(source: str) -> list[str]:
    text = _plain(source)
    found = [pattern for pattern in _REFUSED if re.search(pattern, text)]
    return [*found, *([_SCRIPT_OF_ITS_OWN] if re.search(_SCRIPT_OF_ITS_OWN, source) else ())]


def test_templates_are_fit_for_the_strict_policy() -> None:
    unfit = {path: _unfit(path.read_text()) for path in TEMPLATES}

    assert len(unfit) > 250
    assert {path: found for path, found in unfit.items() if found} == {}


@pytest.mark.parametrize(
    "source",
    [
        '<p style="color: red">',
        "<style>p {}</style>",
        '<a onclick="f()">',
        '<a hx-on="click: f()">',
        '<img src="//cdn.example.org/a.png">',
        "<script>f()</script>",
    ],
)
def test_a_template_that_the_policy_would_break_is_refused(source: str) -> None:
    assert len(_unfit(source)) == 1


def test_every_class_of_a_template_is_defined() -> None:
    unknown = {
        (name, path.name)
        for path in TEMPLATES
        for value in re.findall(r'class="([^"]*)"', _plain(path.read_text()))
        for name in value.split()
        if name not in DEFINED and not name.endswith("-") and f".{name}" not in JS
    }

    assert unknown == set()


def test_no_script_evaluates_text() -> None:
    assert not re.search(r"\beval\(|new Function|innerHTML\s*=", JS)
