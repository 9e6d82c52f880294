"""Starts the local cluster's own language server in place of vLLM's or SGLang's."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slipway_localcluster import language_server
from slipway_localcluster.controllers import triton
from slipway_localcluster.errors import JsonObject

_VLLM = "vllm"
_SGLANG = "sglang"
_COMMANDS = {
    ("vllm", "serve"): _VLLM,
    ("python3", "-m", "sglang.launch_server"): _SGLANG,
}
_RELEASE = re.compile(r":v?(\d+)\.(\d+)\.")
_MODEL_FIRST = (
    "`model` should be provided as the first positional argument when using `vllm serve`. "
    "i.e. `vllm serve <model> --<arg> <value>`."
)
_PORT = "--port="
_HOST = "--host="
_STEP = "LOCALCLUSTER_STEP_SECONDS"
_DEFAULT_PORTS = {_VLLM: 8000, _SGLANG: 30000}


def is_language_server(container: JsonObject) -> bool:
    return _server_of(container) is not None


def _server_of(container: JsonObject) -> str | None:
    """Return the server that the container starts. None if it starts none. Only vLLM's image starts its server
    without a command.
    """
    command = _texts(container, "command")
    if command:
        return next(
            (server for start, server in _COMMANDS.items() if _begins(command, start)), None
        )
    repository = str(container.get("image", "")).partition("@")[0]
    is_vllm = repository.rpartition("/")[2].partition(":")[0] == "vllm-openai"
    return _VLLM if is_vllm else None


def _texts(container: JsonObject, field: str) -> tuple[str, ...]:
    return tuple(str(item) for item in container.get(field) or ())


def _begins(command: tuple[str, ...], start: tuple[str, ...]) -> bool:
    return command[: len(start)] == start


def _needs_model_first(container: JsonObject) -> bool:
    """vLLM before 0.18 takes the model anywhere; one without a release in its tag is taken for a current one."""
    release = _RELEASE.search(str(container.get("image", "")))
    return release is None or (int(release[1]), int(release[2])) >= (0, 18)


def plan_launch(
    container: JsonObject, choose_ports: Callable[[int], Sequence[int]]
) -> triton.Launch:
    """Return the server's arguments, with a port of this machine."""
    server = _server_of(container) or _VLLM
    command = _texts(container, "command")
    program = next((start for start in _COMMANDS if _begins(command, start)), ())
    # The model may follow the program.
    arguments = [*command[len(program) :], *_texts(container, "args")]
    if (
        server == _VLLM
        and arguments
        and arguments[0].startswith("-")
        and _needs_model_first(container)
    ):
        raise triton.BadArguments(_MODEL_FIRST)
    declared = [item.removeprefix(_PORT) for item in arguments if item.startswith(_PORT)]
    if any(not text.isdigit() for text in declared):
        raise triton.BadArguments(f"{_PORT} needs a number")
    (port,) = choose_ports(1)
    others = [item for item in arguments if not item.startswith((_PORT, _HOST))]
    # Before the others: an option with a list takes what follows it.
    own = (f"--server={server}", f"--image={container.get('image', '')}", f"{_PORT}{port}")
    return triton.Launch(
        command=(sys.executable, "-m", language_server.__name__, *own, *others),
        ports={int(declared[-1]) if declared else _DEFAULT_PORTS[server]: port},
        http_port=port,
        repositories=(),
        ignored=(),
    )


def environment() -> Mapping[str, str]:
    """Return the environment of the server: what it needs to import this package, and one thread, since other pods
    compute too.
    """
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(language_server.__file__).parents[2]),
        "OPENBLAS_NUM_THREADS": "1",
        **({_STEP: os.environ[_STEP]} if _STEP in os.environ else {}),
    }
