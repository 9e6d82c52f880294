"""Starts the real tritonserver binary that the `nvidia-pytriton` wheel carries.

The wheel's own Python package is never imported. Its Triton has the Python backend only;
`model_repository.py` turns ONNX models into Python ones.
"""

import ctypes.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from slipway_localcluster.controllers.processes import LOCALHOST

HTTP, GRPC, METRICS = "http-port", "grpc-port", "metrics-port"
DEFAULT_PORTS = {HTTP: 8000, GRPC: 8001, METRICS: 8002}
_REPOSITORY_FLAGS = ("model-repository", "model-store")
# Set by the cluster; the pod's own values are dropped.
_OWNED_FLAGS = {
    "http-address",
    "grpc-address",
    "metrics-address",
    "backend-directory",
    "cache-directory",
    "pinned-memory-pool-byte-size",
    "cuda-memory-pool-byte-size",
}
# Frugal defaults for a laptop; flags of the pod override them.
_FRUGAL = {
    "http-thread-count": "2",
    "grpc-infer-allocation-pool-size": "1",
    "model-load-thread-count": "1",
    "exit-timeout-secs": "10",
}


class TritonUnavailable(Exception):
    """This machine cannot run Triton; the message names the cause and the fix."""


class BadArguments(Exception):
    """The pod's arguments are not supported by the local cluster."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Paths of the wheel's parts, and the environment variables that they need."""

    binary: Path
    backends: Path
    caches: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Launch:
    """A command for one pod; `ports` maps the pod's container ports to real ones."""

    command: tuple[str, ...]
    ports: Mapping[int, int]
    http_port: int
    repositories: tuple[Path, ...]
    ignored: tuple[str, ...]


def check_machine() -> None:
    """Raises TritonUnavailable, with the fix, where no Triton could be started."""
    _stub_of(_wheel_root())
    _libpython_directory()


def install(directory: Path) -> Installation:
    """Find the wheel and lay out one backend directory; raises TritonUnavailable."""
    root = _wheel_root()
    server = root / "pytriton" / "tritonserver"
    binary = server / "bin" / "tritonserver"
    stub = _stub_of(root)
    libraries = [root / "nvidia_pytriton.libs", _libpython_directory()]
    backends = directory / "backends"
    target = backends / "python"
    target.mkdir(parents=True, exist_ok=True)
    for source in [*(server / "backends" / "python").iterdir(), stub]:
        if source.is_file():
            _place(source, target / source.name)
    environment = {
        "LD_LIBRARY_PATH": ":".join(str(path) for path in libraries),
        # The stub finds site-packages through the first python3 on PATH, and ignores PYTHONPATH.
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(directory),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
    }
    return Installation(binary, backends, server / "caches", environment)


def _wheel_root() -> Path:
    try:
        distribution = metadata.distribution("nvidia-pytriton")
    except metadata.PackageNotFoundError as error:
        raise TritonUnavailable(
            "Triton is not installed: the package nvidia-pytriton brings it (Linux)."
        ) from error
    return Path(str(distribution.locate_file(""))).resolve()


def _stub_of(root: Path) -> Path:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stubs = root / "pytriton" / "tritonserver" / "python_backend_stubs"
    stub = stubs / version / "triton_python_backend_stub"
    if not stub.is_file():
        raise TritonUnavailable(
            f"nvidia-pytriton has no Python backend for Python {version}; use Python 3.11, 3.12 or "
            "3.13."
        )
    return stub


def _place(source: Path, target: Path) -> None:
    if target.is_file() and target.stat().st_size == source.stat().st_size:
        return
    # Written aside and renamed: a running pod may have the old file mapped.
    partial = target.with_suffix(".partial")
    shutil.copy2(source, partial)
    partial.replace(target)


def _libpython_directory() -> Path:
    """Return the directory of libpythonX.Y.so.1.0, which the stub is linked to."""
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    configured = [sysconfig.get_config_var(key) for key in ("LIBDIR", "LIBPL")]
    candidates = [Path(item) for item in configured if item]
    candidates += [Path(sys.base_prefix) / "lib", Path(sys.base_prefix) / "lib64"]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if multiarch:
        candidates += [Path("/usr/lib") / multiarch, Path(sys.base_prefix) / "lib" / multiarch]
    for candidate in candidates:
        if (candidate / name).exists():
            return candidate
    if ctypes.util.find_library(name.removeprefix("lib").removesuffix(".so.1.0")):
        # The dynamic linker finds it, so the directory does not matter.
        return Path(sys.base_prefix) / "lib"
    raise TritonUnavailable(
        f"{name} was not found, and Triton's Python backend needs it. Install it "
        f"(Debian, Ubuntu: apt install {name.partition('.so')[0]}; pyenv: reinstall with "
        "PYTHON_CONFIGURE_OPTS=--enable-shared) or use a Python that ships it, such as uv's."
    )


@cache
def known_flags(binary: Path, library_path: str) -> frozenset[str]:
    """Return the flags that this tritonserver lists in its `--help`."""
    finished = subprocess.run(
        [str(binary), "--help"],
        env={"LD_LIBRARY_PATH": library_path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = (line.split() for line in (finished.stdout + finished.stderr).splitlines())
    names = (line[0] for line in lines if line and line[0].startswith("--"))
    return frozenset(name.removeprefix("--").partition("=")[0] for name in names)


def plan_launch(
    installation: Installation,
    arguments: Sequence[str],
    *,
    resolve: Callable[[str], Path | None],
    choose_ports: Callable[[int], list[int]],
    shared_memory_prefix: str,
    known: frozenset[str],
) -> Launch:
    """Translate a container's arguments; `resolve` turns a path in the pod into a real one."""
    flags = parse_flags(arguments)
    ignored = tuple(f"--{name}" for name, _ in flags if name not in known)
    flags = [(name, value) for name, value in flags if name in known]
    requested = {name: _port(name, value) for name, value in flags if name in DEFAULT_PORTS}
    container_ports = {**DEFAULT_PORTS, **requested}
    real = dict(zip(DEFAULT_PORTS, choose_ports(len(DEFAULT_PORTS)), strict=True))
    repositories = tuple(_repositories(flags, resolve))
    owned = {*_REPOSITORY_FLAGS, *_OWNED_FLAGS, *DEFAULT_PORTS}
    passed = [(name, value) for name, value in flags if name not in owned]
    fixed: list[tuple[str, str]] = [
        *(("model-repository", str(path)) for path in repositories),
        ("backend-directory", str(installation.backends)),
        ("cache-directory", str(installation.caches)),
        *((f"{name}-address", LOCALHOST) for name in ("http", "grpc", "metrics")),
        *((name, str(port)) for name, port in real.items()),
        ("pinned-memory-pool-byte-size", "0"),
        ("allow-gpu-metrics", "false"),
        ("backend-config", f"python,shm-region-prefix-name={shared_memory_prefix}"),
        ("backend-config", "python,shm-default-byte-size=1048576"),
    ]
    names = {name for name, _ in passed}
    frugal = [(name, value) for name, value in _FRUGAL.items() if name not in names]
    chosen = [*fixed, *frugal, *(item for item in passed if item not in fixed)]
    command = [str(installation.binary), *(_flag(name, value) for name, value in chosen)]
    ports = {container_ports[name]: real[name] for name in DEFAULT_PORTS}
    return Launch(tuple(command), ports, real[HTTP], repositories, ignored)


def _flag(name: str, value: str | None) -> str:
    return f"--{name}" if value is None else f"--{name}={value}"


def parse_flags(arguments: Sequence[str]) -> list[tuple[str, str | None]]:
    """Parse `--name=value`, `--name value` and bare `--name`, in order; drop a leading program name."""
    remaining = list(arguments)
    if remaining and remaining[0].rpartition("/")[2] == "tritonserver":
        remaining.pop(0)
    flags: list[tuple[str, str | None]] = []
    for argument in remaining:
        if argument.startswith("--"):
            name, has_value, value = argument[2:].partition("=")
            flags.append((name, value if has_value else None))
        elif flags and flags[-1][1] is None:
            flags[-1] = (flags[-1][0], argument)
        else:
            raise BadArguments(f"the local cluster cannot run the argument {argument!r}")
    return flags


def _port(name: str, value: str | None) -> int:
    if value is None or not value.isdigit():
        raise BadArguments(f"--{name} needs a port number, not {value!r}")
    return int(value)


def _repositories(
    flags: Sequence[tuple[str, str | None]], resolve: Callable[[str], Path | None]
) -> list[Path]:
    repositories = []
    for name, value in flags:
        if name not in _REPOSITORY_FLAGS:
            continue
        path = resolve(value or "")
        if path is None:
            raise BadArguments(
                f"--{name}={value} is not inside a volume of the pod; the local cluster reads "
                "models only from a volume that an init container has filled"
            )
        repositories.append(path)
    if not repositories:
        raise BadArguments("tritonserver needs --model-repository")
    return repositories
