"""Starts the local cluster's own language server in place of vLLM's."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fleet.localcluster import language_server
from fleet.localcluster.controllers import triton
from fleet.localcluster.errors import JsonObject

_COMMAND = ["vllm", "serve"]
_PORT = "--port="
_DEFAULT_PORT = 8000


def is_vllm(container: JsonObject) -> bool:
    command = [str(item) for item in container.get("command") or ()]
    if command:
        return command == _COMMAND
    repository = str(container.get("image", "")).partition("@")[0]
    return repository.rpartition("/")[2].partition(":")[0] == "vllm-openai"


def plan_launch(
    container: JsonObject, choose_ports: Callable[[int], Sequence[int]]
) -> triton.Launch:
    """vLLM's arguments, with a port of this machine."""
    arguments = [str(item) for item in container.get("args") or ()]
    declared = [item.removeprefix(_PORT) for item in arguments if item.startswith(_PORT)]
    if any(not text.isdigit() for text in declared):
        raise triton.BadArguments(f"{_PORT} needs a number")
    (port,) = choose_ports(1)
    others = [item for item in arguments if not item.startswith(_PORT)]
    command = (sys.executable, "-m", language_server.__name__, *others, f"{_PORT}{port}")
    return triton.Launch(
        command=command,
        ports={int(declared[-1]) if declared else _DEFAULT_PORT: port},
        http_port=port,
        repositories=(),
        ignored=(),
    )


def environment() -> Mapping[str, str]:
    """Only what the server needs to import this package, and one thread: other pods compute too."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(language_server.__file__).parents[3]),
        "OPENBLAS_NUM_THREADS": "1",
    }
