"""What no template may hold: inline style or script, undefined classes, remote addresses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
CSS = "".join(path.read_text() for path in (ROOT / "static/css").glob("*.css"))
JS = "".join(path.read_text() for path in (ROOT / "static/js").glob("*.js"))
DEFINED = set(re.findall(r"\.([a-zA-Z][\w-]*)", CSS))


def _plain(text: str) -> str:
    return re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", " ", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: str(p.relative_to(ROOT / "templates")))
def test_template_is_fit_for_the_strict_policy(path: Path) -> None:
    text = _plain(path.read_text())

    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"<style\b", text)
    assert not re.search(r"<script(?![^>]*\b(src|type=\"application/json\"))", path.read_text())
    assert not re.search(r"\son\w+\s*=", text)
    assert not re.search(r"hx-on|hx-vals=['\"]js:", text)
    assert not re.search(r"(src|href)=\"(https?:)?//", text)


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


def test_templates_are_formatted_and_linted() -> None:
    command = [sys.executable, "-m", "djlint", "templates", "--check", "--lint", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:]
