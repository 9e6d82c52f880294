"""Makes the virtual environment, installs exactly what requirements.lock names, by its hashes, and
links the houses of this repository into it: client, localcluster, demo.

`python3 -m portal.management.install FOLDER` runs before anything is installed, so it uses the
standard library only, and the Pythons that it refuses must be able to read it.
Packages come from wherever pip is configured to look; uv, which pip brings, only does it faster.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

from portal.management import interpreters

LOCK = "requirements.lock"
HOUSES = ("client", "localcluster", "demo")
INSTALLER_LOCK = "portal/management/installer.lock"
COMPOSE = "Use docker-compose.yml instead: docker compose up --build"


def main() -> None:
    check_machine()
    folder = Path(sys.argv[1])
    python = folder / "bin" / "python"
    if not is_usable(python):
        print(f"Creating the virtual environment {folder}", flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(folder)], hint=VENV_HINT)
    print(f"Installing the packages of {LOCK}", flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    has_uv = subprocess.run([*pip, "-r", INSTALLER_LOCK], check=False).returncode == 0
    if not (has_uv and install_with_uv(python)):
        run([*pip, "-r", LOCK], hint="See the output of pip above.")
    link_houses(python)


VENV_HINT = (
    "This Python cannot create virtual environments. On Debian and Ubuntu: apt-get install "
    "python3-venv. Or choose another Python: make PYTHON=/path/to/python3.12"
)


def check_machine() -> None:
    if sys.version_info[:2] not in interpreters.SUPPORTED:
        sys.exit(f"{refusal()} {COMPOSE}")
    if not sys.platform.startswith("linux"):
        sys.exit(f"The embedded parts (Triton, Envoy) exist for Linux only. {COMPOSE}")


def refusal() -> str:
    """Return why this interpreter is refused, and which one to use instead."""
    current = ".".join(str(number) for number in sys.version_info[:3])
    versions = interpreters.supported_versions()
    path = interpreters.find_supported()
    if path:
        return (
            f"Run: make demo PYTHON={path} (the demo needs Python {versions}; this is {current})."
        )
    return (
        f"The demo needs Python {versions}; this is {current}, and none of them is installed. "
        "Install one, for example with uv: uv python install 3.12 && "
        "make demo PYTHON=$(uv python find 3.12)."
    )


def is_usable(python: Path) -> bool:
    """Whether the environment has pip and this Python version."""
    command = [str(python), "-c", "import sys; print(*sys.version_info[:2])"]
    if not has_pip(python):
        return False
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return tuple(int(number) for number in answer.stdout.split()) == sys.version_info[:2]


def has_pip(python: Path) -> bool:
    command = [str(python), "-m", "pip", "--version"]
    return python.exists() and (
        subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


def install_with_uv(python: Path) -> bool:
    command = [str(python), "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
    command += ["--require-hashes"]
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
    variables = {
        "UV_DEFAULT_INDEX": settings.get("index-url"),
        "UV_INDEX": settings.get("extra-index-url"),
        "UV_FIND_LINKS": settings.get("find-links", "").replace(" ", ",") or None,
        "SSL_CERT_FILE": settings.get("cert"),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_HTTP_TIMEOUT": settings.get("default-timeout"),
    }
    # What the person set for uv itself wins.
    return {**{name: value for name, value in variables.items() if value}, **os.environ}


def link_houses(python: Path) -> None:
    """Make `slipway` and imports of the houses work from the sources, without a build and its tools."""
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    folders = [Path(house).resolve() / "src" for house in HOUSES]
    path_file = Path(answer.stdout.strip()) / "slipway-houses.pth"
    path_file.write_text("".join(f"{folder}\n" for folder in folders))
    script = python.with_name("slipway")
    script.write_text(f"#!{python.absolute()}\nfrom slipway_client.cli.main import run\n\nrun()\n")
    script.chmod(0o755)


def run(command: "list[str]", *, hint: str) -> None:
    if subprocess.run(command, check=False).returncode:
        sys.exit(hint)


if __name__ == "__main__":
    main()
