"""The environment in which `make check` tries the newest Django."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.management import interpreters, next_django
from tests.portal.management.test_lock import EVERYTHING, NEXT_DJANGO, entries


def test_without_a_newer_python_the_check_says_so_and_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(interpreters, "find", lambda version: None)

    assert next_django.main() == 0

    assert capsys.readouterr().out == (
        "Skipped: the newest Django needs Python 3.12 or 3.13, which is not installed here.\n"
    )


def test_only_django_and_what_it_needs_differ_from_what_is_pinned(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(next_django.locked_packages())
    installed, pinned, newest = entries(lock), entries(EVERYTHING), entries(NEXT_DJANGO)

    assert [name for name in installed if name.startswith("django==")] == [
        name for name in newest if name.startswith("django==")
    ]
    assert newest.keys() <= installed.keys()
    assert installed.keys() - newest.keys() <= pinned.keys()
    assert {name.partition("==")[0] for name in pinned} <= {
        name.partition("==")[0] for name in installed
    }
