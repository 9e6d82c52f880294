"""What the design says of the code as a whole, checked on every run. `make check` has the arrows of imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("portal", "deployments", "fleet", "client/src", "localcluster/src", "demo/src")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def calls(path: Path, *names: str) -> Iterator[ast.Call]:
    """Calls of methods of these names. Only files in which one is written at all are parsed."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if any(name in text for name in names) else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in names
        ):
            yield node


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "misc"])
def test_every_module_is_named_after_its_topic(name: str) -> None:
    assert [path for path in sources() if path.stem == name] == []


def test_tasks_are_woken_never_delayed() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sources()
        for call in calls(path, "delay")
    ]

    assert places == []


def test_only_the_kernel_sends_messages() -> None:
    senders = {
        str(path.relative_to(ROOT))
        for path in sources()
        for _ in calls(path, "apply_async", "send_task")
    }

    assert senders == {"portal/core/wakeups.py"}


def test_there_are_no_signals() -> None:
    pattern = re.compile(
        r"django\.(db\.models|core|dispatch)[\w.]* import .*\b(post_save|pre_save|receiver|Signal)\b"
    )

    assert [path for path in sources() if pattern.search(path.read_text())] == []


def test_doors_hold_no_queries_and_no_transactions() -> None:
    # A plural is a service module: golden_requests.save(...).
    pattern = re.compile(r"\.objects\.|(?<!s)\.save\(|transaction\.")
    doors = [path for path in sources() if {"api", "web"} & set(path.relative_to(ROOT).parts[1:3])]
    kernel = {"idempotency.py", "models.py"}

    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in doors
        if path.name not in kernel
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]

    assert places == []


def test_what_is_silenced_says_why() -> None:
    """ "# noqa: CODE  why" and "# type: ignore[code]  # why"."""
    silenced = re.compile(r"# (?:noqa|type: ignore)(.*)$")
    with_reason = re.compile(r"(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[\w, -]+\])\s+(?:#|-)?\s*\w+")
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := silenced.search(line)) and not with_reason.match(match.group(1))
    ]

    assert places == []


def test_no_error_is_swallowed_blindly() -> None:
    """To roll back and raise again is no swallowing. At a border one file, or check, must not stop the others."""
    borders = {
        *("verification.py", "sandbox_child.py", "examination.py", "sigstore_verifier.py"),
        "looks.py",
    }
    blind = re.compile(r"except(?::| (?:Base)?Exception\b)")
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        if path.name not in borders and blind.search(path.read_text())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
        and (
            node.type is None
            or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
        )
    ]

    assert places == []


def test_nothing_is_left_to_do() -> None:
    # ONNX Runtime has an error of that name.
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK|(?<!runtime_errors\.)NotImplemented)\b")
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]

    assert places == []


def test_every_celery_task_of_the_schedule_exists() -> None:
    code = (
        "import django; django.setup();"
        "from portal.celery import app; app.loader.import_default_modules();"
        "from portal import celery_config as c;"
        "print([s['task'] for s in c.beat_schedule.values() if s['task'] not in app.tasks])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"from tests import environment; environment.apply(); {code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == "[]", done.stderr
