"""A real MLflow in an environment of its own, and the client built from this repository for it.

The environment is made once and kept in the cache folder, under a name that follows from what is in
it. The client is built for each run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from portal.management import install

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = (
    "mlflow==3.17.2",
    "onnx==1.23.2",
    "onnxruntime==1.31.1",
    "xgboost-cpu==3.2.0",
    "lightgbm==4.7.0",
    "httpx==0.28.1",
    "rich==15.0.0",
    "setuptools>=80",
)
_WITHOUT_NETWORK = ("error sending request", "dns error", "Failed to fetch", "Could not connect")


def programs() -> Path:
    """The folder of the environment's programs. Skips where no package index can be reached."""
    folder = _folder()
    if not (folder / ".installed").exists():
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *REQUIREMENTS)
        (folder / ".installed").touch()
    return folder / "bin"


def build_client(folder: Path) -> Path:
    """The client with its entry points, to be put on PYTHONPATH."""
    # setuptools builds beside the sources, which other tests read.
    sources = shutil.copytree(ROOT / "client", folder / "sources")
    target = folder / "client"
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target", str(target))
    _uv("pip", "install", "--python", str(programs() / "python"), *options, str(sources))
    return target


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    digest = hashlib.sha256("\n".join([sys.version, *REQUIREMENTS]).encode()).hexdigest()
    return Path(base) / "slipway" / f"mlflow-client-{digest[:12]}"


def _uv(*arguments: str) -> None:
    environment = install.uv_environment(Path(sys.executable))
    # Without this repository's own overrides: MLflow gets the numpy that it needs.
    command = [sys.executable, "-m", "uv", "--no-config", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and any(text in done.stderr for text in _WITHOUT_NETWORK):
        pytest.skip(f"MLflow cannot be installed without a package index: {done.stderr[-500:]}")
    assert done.returncode == 0, done.stderr
