"""`make lock`: pin every package with its hashes, from the dependencies in pyproject.toml.

requirements.lock is what the demo and the tests install, requirements-image.lock what the production
image installs (the same versions), installer.lock the uv that installs them, next-django.lock the Django
that `make check` also tries. Versions that are pinned already stay, unless `--upgrade` is given.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from portal.management import install, next_django

REPOSITORY = Path(__file__).resolve().parents[2]
_OPTIONS = (
    *("--universal", "--generate-hashes"),
    *("--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"),
)
# What the houses of this repository need of each other is linked, not installed.
_OWN = ("--no-emit-package", "slipway", "--no-emit-package", "slipway-localcluster")
_EVERYTHING = REPOSITORY / install.LOCK
_IMAGE = REPOSITORY / "requirements-image.lock"
_INSTALLER = REPOSITORY / install.INSTALLER_LOCK


def main() -> None:
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv else []
    houses = [f"{house}/pyproject.toml" for house in install.HOUSES]
    _compile(["pyproject.toml", *houses, "--extra", "test", *_OWN, *upgrade], _EVERYTHING)
    _compile(["pyproject.toml", "--constraint", str(_EVERYTHING)], _IMAGE)
    _compile(["-", *upgrade], _INSTALLER, text="uv\n")
    _compile(["-", *upgrade], next_django.LOCK, text="django>=6,<7\n", python_version="3.12")


def _compile(
    sources: list[str], target: Path, *, text: str = "", python_version: str = "3.11"
) -> None:
    python = Path(sys.executable)
    command = [
        *(str(python), "-m", "uv", "pip", "compile", *sources, *_OPTIONS),
        *("--python-version", python_version, "-o", str(target)),
    ]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        input=text,
        text=True,
        env=install.uv_environment(python),
        check=False,
        stdout=subprocess.DEVNULL,
    )
    if done.returncode:
        sys.exit(f"{target.name} was not written; read what uv says above.")
    print(f"Wrote {target.name}.")


if __name__ == "__main__":
    main()
