"""The Python interpreters of this machine, and which of them can run the demo.

`python3 -m portal.management.interpreters` prints one line for each version, with `--fast` the one that
environments are made with unless another is named. Read by interpreters that it refuses as well, so it uses the standard library and
old syntax only.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

# The wheel nvidia-pytriton has a Python backend for these. Python 3.13 comes last because it has
# NumPy 2 only, with which that backend knows no string tensors.
SUPPORTED = ((3, 12), (3, 11), (3, 13))
# What people's machines have besides; .ci/quickstart says which of all these is absent.
KNOWN = ((3, 11), (3, 12), (3, 13), (3, 14))
# Where version managers put interpreters, below the home folder and below /opt.
_FOLDERS = (
    ".pyenv/versions/*/bin",
    ".local/share/uv/python/*/bin",
    ".asdf/installs/python/*/bin",
    ".local/share/mise/installs/python/*/bin",
    "miniconda3/bin",
    "miniforge3/bin",
)
_SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/opt/python/*/bin", "/opt/python*/bin")
# Making a virtual environment needs ensurepip. What runs sees through the scripts of pyenv, and
# through a virtual environment that may be gone tomorrow.
_QUESTION = """
import ensurepip, sys
path = getattr(sys, "_base_executable", sys.executable)
print(sys.version_info[0], sys.version_info[1], path)
"""
_TIMEOUT_SECONDS = 20
# Debian builds it with a profile of what programs do; `configure` does only where it is told to, and
# version managers mostly do not tell it. The same Python code then takes a sixth more processor time.
_OF_THE_DISTRIBUTION = Path("/usr/bin/python3")
_PROFILED = "--enable-optimizations"
# Of the distribution, where Triton's Python backend finds its libpython.
_LIBRARIES = Path("/usr/lib")


def find(version: "tuple[int, int]") -> "str | None":
    """Return the path of an interpreter of this version that can make virtual environments."""
    name = "python{}.{}".format(*version)
    for folder in _folders():
        for candidate in (folder / name, folder / "python3"):
            if os.access(str(candidate), os.X_OK):
                path = _path_of(candidate, version)
                if path:
                    return path
    return None


def find_supported() -> "str | None":
    return next((path for path in map(find, SUPPORTED) if path), None)


def find_fast() -> str:
    """Return this interpreter, or the distribution's if this one was built without a profile and that one can do
    all that is needed: its version is supported, and it has ensurepip and libpython.
    """
    own = getattr(sys, "_base_executable", sys.executable)
    is_profiled = _PROFILED in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    if is_profiled or not os.access(str(_OF_THE_DISTRIBUTION), os.X_OK):
        return own
    for version in SUPPORTED:
        path = _path_of(_OF_THE_DISTRIBUTION, version)
        if path and any(_LIBRARIES.glob("*/libpython{}.{}.so.1.0".format(*version))):
            return path
    return own


def supported_versions() -> str:
    names = ["{}.{}".format(*version) for version in sorted(SUPPORTED)]
    return "{} or {}".format(", ".join(names[:-1]), names[-1])


def _folders() -> "list[Path]":
    named = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    home = Path(os.environ.get("HOME", "/nonexistent"))
    managed = [path for pattern in _FOLDERS for path in sorted(home.glob(pattern), reverse=True)]
    system = [
        path
        for pattern in _SYSTEM_FOLDERS
        for path in sorted(Path("/").glob(pattern[1:]), reverse=True)
    ]
    return [*named, *managed, *system]


def _path_of(candidate: Path, version: "tuple[int, int]") -> "str | None":
    try:
        answer = subprocess.run(
            [str(candidate), "-I", "-c", _QUESTION],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    fields = answer.stdout.decode().split(None, 2)
    is_right = answer.returncode == 0 and fields[:2] == [str(number) for number in version]
    return fields[2].strip() if is_right else None


def main() -> None:
    if sys.argv[1:] == ["--fast"]:
        sys.stdout.write(find_fast() + "\n")
        return
    for version in KNOWN:
        sys.stdout.write("{}.{} {}\n".format(*version, find(version) or "-"))


if __name__ == "__main__":
    main()
