"""`make check`: every static check of the repository, two at a time; reports what failed and how to
fix it.
"""

from __future__ import annotations

import difflib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from portal.management import client_answers, install, sizes

REPOSITORY = Path(__file__).resolve().parents[2]
SNAPSHOT = REPOSITORY / "docs" / "openapi.yaml"
_BIN = Path(sys.executable).parent
_MANAGE = (sys.executable, "manage.py")
_TEST_SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.settings"}
_SCHEMA = (*_MANAGE, "spectacular", "--validate", "--fail-on-warn", "--api-version", "v1")


@dataclass(frozen=True, slots=True)
class CheckCommand:
    name: str
    command: tuple[str, ...]
    fix: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: CheckCommand
    is_ok: bool
    seconds: float
    output: str


def main() -> int:
    if "--write-openapi" in sys.argv:
        SNAPSHOT.write_text(_schema())
        print(f"Wrote {SNAPSHOT.relative_to(REPOSITORY)}.")
        return client_answers.main()
    if "--openapi" in sys.argv:
        difference = _openapi_difference()
        print(difference)
        return 1 if difference else 0
    with ThreadPoolExecutor(2) as pool:
        results = [_show(result) for result in pool.map(_run, _checks())]
    failed = [result.check.name for result in results if not result.is_ok]
    print("Large, for a reader to look at:", flush=True)
    sizes.main()
    print(f"Failed: {', '.join(failed)}" if failed else "All checks passed.")
    return 1 if failed else 0


def _checks() -> list[CheckCommand]:
    production = {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "SLIPWAY_SECRET_KEY": secrets.token_urlsafe(50),
        "SLIPWAY_DATABASE_URL": "postgres://slipway:not-used@127.0.0.1:1/slipway",
        "SLIPWAY_REDIS_URL": "redis://127.0.0.1:1/0",
        "SLIPWAY_ALLOWED_HOSTS": "slipway.example.org",
    }
    deploy = (*_MANAGE, "check", "--deploy", "--fail-level", "WARNING")
    migrations = (*_MANAGE, "makemigrations", "--check", "--dry-run", "-v", "1")
    templates = ("--check", "--lint", "templates")
    return [
        CheckCommand("mypy", (_tool("mypy"),), "Fix the types reported above."),
        CheckCommand(
            "newest Django",
            (sys.executable, "-m", "portal.management.next_django"),
            "Write what Django 5.2 and the newest release both take.",
        ),
        CheckCommand("ruff check", (_tool("ruff"), "check", "."), "ruff check --fix ."),
        CheckCommand("ruff format", (_tool("ruff"), "format", "--check", "."), "ruff format ."),
        CheckCommand(
            "import-linter",
            (_tool("lint-imports"),),
            "Move the code so that imports follow docs/architecture.md.",
        ),
        *(_imports_of(house) for house in install.HOUSES),
        CheckCommand("djLint", (_tool("djlint"), *templates), "djlint --reformat templates"),
        CheckCommand("migrations", migrations, "manage.py makemigrations", _TEST_SETTINGS),
        CheckCommand("deploy settings", deploy, "Fix portal/settings.py.", production),
        CheckCommand(
            "OpenAPI snapshot",
            (sys.executable, "-m", "portal.management.check", "--openapi"),
            "Run make openapi and review the diff before you commit it.",
        ),
        CheckCommand(
            "client's answers",
            (sys.executable, "-m", "portal.management.client_answers", "--check"),
            "Run make openapi; what the client names is in client/answers.toml.",
        ),
    ]


def _imports_of(house: str) -> CheckCommand:
    return CheckCommand(
        f"imports of {house}",
        (_tool("lint-imports"), "--config", f"{house}/pyproject.toml"),
        f"What {house} may import is in {house}/pyproject.toml.",
        {"PYTHONPATH": f"{house}/src"},
    )


def _openapi_difference() -> str:
    """Return the difference between the code's schema and docs/openapi.yaml. Empty if they agree."""
    kept = SNAPSHOT.read_text() if SNAPSHOT.exists() else ""
    lines = difflib.unified_diff(
        kept.splitlines(), _schema().splitlines(), "docs/openapi.yaml", "the code", lineterm=""
    )
    return "\n".join(lines)


def _schema() -> str:
    done = subprocess.run(
        _SCHEMA,
        cwd=REPOSITORY,
        env={**_neutral_environment(), **_TEST_SETTINGS},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"The API schema could not be generated:\n{done.stderr}")
    return done.stdout


def _run(check: CheckCommand) -> CheckResult:
    began = time.monotonic()
    done = subprocess.run(
        check.command,
        cwd=REPOSITORY,
        env={**_neutral_environment(), **check.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return CheckResult(check, done.returncode == 0, time.monotonic() - began, done.stdout)


def _show(result: CheckResult) -> CheckResult:
    is_skipped = result.is_ok and result.output.startswith("Skipped:")
    word = "FAILED" if not result.is_ok else "skip  " if is_skipped else "ok    "
    print(f"{word} {result.check.name:<18} {result.seconds:5.1f} s", flush=True)
    if is_skipped:
        print(f"  {result.output}", end="", flush=True)
    if not result.is_ok:
        print(f"{result.output}\n  How to fix it: {result.check.fix}\n", flush=True)
    return result


def _neutral_environment() -> dict[str, str]:
    """The result may not depend on what the person has set for the demo."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("SLIPWAY_", "DJANGO_"))}


def _tool(name: str) -> str:
    return str(_BIN / name)


if __name__ == "__main__":
    sys.exit(main())
