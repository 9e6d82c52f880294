"""A part of `make check`: a short selection of the suite on the newest Django.

It needs a Python that this Django supports, which may be newer than that of the portal; without one it says so and
passes. The environment has the versions of requirements.lock, with Django from next-django.lock (`make lock`).
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from portal.management import install, interpreters

REPOSITORY: Final = Path(__file__).resolve().parents[2]
LOCK: Final = REPOSITORY / "portal" / "management" / "next-django.lock"
# What it needs at least, and what else has packages of requirements.lock.
VERSIONS: Final = ((3, 12), (3, 13))
_FOLDER: Final = REPOSITORY / ".venv" / "next-django"
_SELECTION: Final = (
    "tests/architecture/test_migrations.py",
    "tests/portal/accounts/test_policy.py",
    "tests/portal/accounts/test_sessions.py",
    "tests/deployments/registry/test_references.py",
    "tests/deployments/registry/test_pages.py",
)


def main() -> int:
    python = next(filter(None, map(interpreters.find, VERSIONS)), None)
    if python is None:
        names = " or ".join("{}.{}".format(*version) for version in VERSIONS)
        print(f"Skipped: the newest Django needs Python {names}, which is not installed here.")
        return 0
    _install(python)
    # A deprecation of Django fails here as in the suite (pyproject.toml).
    migrations = ("-W", "error::DeprecationWarning", "manage.py", "makemigrations", "--check")
    selection = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *_SELECTION)
    return _run(*migrations, "--dry-run", DJANGO_SETTINGS_MODULE="tests.settings") or _run(
        *selection
    )


def _install(python: str) -> None:
    """Make the environment, unless it has been made of these locks by this interpreter."""
    packages = locked_packages()
    stamp, made_of = _FOLDER / ".made-of", hashlib.sha256(f"{python}\n{packages}".encode())
    if stamp.is_file() and stamp.read_text() == made_of.hexdigest():
        return
    uv = (sys.executable, "-m", "uv")
    environment = install.uv_environment(Path(sys.executable))
    subprocess.run(
        [*uv, "venv", "--quiet", "--clear", "--python", python, str(_FOLDER)],
        check=True,
        env=environment,
    )
    locked = _FOLDER / "requirements.lock"
    locked.write_text(packages)
    subprocess.run(
        [
            *(*uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
            *("--python", str(_python()), "-r", str(locked)),
        ],
        check=True,
        env=environment,
    )
    stamp.write_text(made_of.hexdigest())


def locked_packages() -> str:
    """Replace entries of requirements.lock by those of the same names in the lock of the newest Django."""
    newest = _entries(LOCK)
    return "".join({**_entries(REPOSITORY / install.LOCK), **newest}.values())


def _entries(lock: Path) -> dict[str, str]:
    """Return the lines of each package by its name."""
    entries: dict[str, str] = {}
    for entry in re.split(r"^(?=\S)", lock.read_text(), flags=re.MULTILINE):
        name = entry.partition("==")[0]
        # A package may have an entry for each Python.
        entries[name] = entries.get(name, "") + entry
    return entries


def _python() -> Path:
    return _FOLDER / "bin" / "python"


def _run(*arguments: str, **environment: str) -> int:
    command = [str(_python()), *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, check=False, env={**os.environ, **environment}
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
