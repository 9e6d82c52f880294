"""Makes the virtual environment and installs exactly what requirements.lock names.

`python3 install.py FOLDER` runs before anything is installed, so it uses the standard library only,
and old Pythons must be able to read it up to the line that refuses them.
Packages come from wherever pip is configured to look; uv, which pip brings, only does it faster.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

LOCK = "requirements.lock"
UV = "uv==0.13.9"
COMPOSE = "Use docker-compose.yml instead: docker compose up --build"


def main() -> None:
    check_machine()
    folder = Path(sys.argv[1])
    python = folder / "bin" / "python"
    if not has_pip(python):
        print(f"Making the virtual environment {folder}", flush=True)
        run([sys.executable, "-m", "venv", str(folder)], hint=VENV_HINT)
    print(f"Installing what {LOCK} names", flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
    is_fast = subprocess.run([*pip, UV], check=False).returncode == 0 and install_with_uv(python)
    if not is_fast:
        run([*pip, "-r", LOCK], hint="Read what pip says above.")


VENV_HINT = (
    "This Python cannot make virtual environments. On Debian and Ubuntu: apt-get install "
    "python3-venv. Or name another Python 3.11+: make PYTHON=/path/to/python3"
)


def check_machine() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  this file is read by the Python that it refuses
        found = ".".join(str(number) for number in sys.version_info[:3])
        sys.exit(
            f"Slipway needs Python 3.11 or newer; this is {found}. "
            f"Name another one: make PYTHON=/path/to/python3.11. {COMPOSE}"
        )
    if not sys.platform.startswith("linux"):
        sys.exit(f"The embedded parts (Triton, Envoy) exist for Linux only. {COMPOSE}")


def has_pip(python: Path) -> bool:
    command = [str(python), "-m", "pip", "--version"]
    return python.exists() and (
        subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


def install_with_uv(python: Path) -> bool:
    command = [str(python), "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
    command += ["--python", str(python), "-r", LOCK]
    return subprocess.run(command, check=False, env=uv_environment(python)).returncode == 0


def uv_environment(python: Path) -> "dict[str, str]":
    """uv does not read pip's configuration, so hand it the same indexes under its own names."""
    listed = subprocess.run(
        [str(python), "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    settings = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = " ".join(str(ast.literal_eval(value)).split())
    wanted = {
        "UV_DEFAULT_INDEX": settings.get("index-url"),
        "UV_INDEX": settings.get("extra-index-url"),
        "UV_FIND_LINKS": settings.get("find-links", "").replace(" ", ",") or None,
        "SSL_CERT_FILE": settings.get("cert"),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_HTTP_TIMEOUT": settings.get("default-timeout"),
    }
    # What the person set for uv itself wins.
    return {**{name: value for name, value in wanted.items() if value}, **os.environ}


def run(command: "list[str]", *, hint: str) -> None:
    if subprocess.run(command, check=False).returncode:
        sys.exit(hint)


if __name__ == "__main__":
    main()
