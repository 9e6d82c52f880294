"""Tasks that behave as badly as the reader of a hostile file might. Run in the sandbox only."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from deployments.registry.domain.artifacts.reading import Artifact, PipedArtifact, open_file
from deployments.registry.domain.not_servable import NotServable


def double(argument: dict[str, Any]) -> dict[str, Any]:
    return {"doubled": argument["number"] * 2}


def describe_process(_: None) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "environment": sorted(os.environ),
        "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "has_django": "django" in sys.modules,
        "folder": [path.name for path in Path.cwd().iterdir()],
    }


def read_by_bytes(argument: dict[str, str], artifact: Artifact) -> str:
    path = argument["path"]
    return b"".join(artifact.read(path, start, 1) for start in range(artifact.sizes[path])).decode()


_remembered: list[int] = []


def remember(number: int) -> list[int]:
    _remembered.append(number)
    return _remembered


def list_libraries(_: None) -> list[str]:
    return sorted({"numpy", "onnx", "treelite", "onnxruntime"} & sys.modules.keys())


def refuse(_: None) -> None:
    raise NotServable("It is no model. Export it again.")


def fail(_: None) -> None:
    raise OverflowError("int too large to convert")


def print_a_lot(_: None) -> str:
    print('{"value": "forged"}')
    os.write(1, b'{"value": "forged"}')
    return "real"


def answer_too_much(_: None) -> str:
    return "x" * (40 * 2**20)


def write_a_large_file(_: None) -> None:
    Path("large").write_bytes(bytes(100 * 2**20))


def spin(_: None) -> None:
    while True:
        pass


def sleep(_: None) -> None:
    time.sleep(600)


def take_memory(_: None) -> None:
    bytearray(8 * 2**30)


def crash(_: None) -> None:
    ctypes.string_at(0)


def exit_quietly(_: None) -> None:
    os._exit(0)


def be_killed(_: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave_a_child(path: str) -> str:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(path).write_text(str(child.pid))
    return "done"


def start_a_child_and_sleep(path: str) -> None:
    leave_a_child(path)
    time.sleep(600)


def connect(port: int) -> str:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return "connected"


def read_zip_member(name: str, artifact: Artifact) -> dict[str, Any]:
    with zipfile.ZipFile(open_file(artifact, "deep/a.zip")) as archive:
        return {"names": archive.namelist(), "text": archive.read(name).decode()}


def request_badly(how: str, artifact: PipedArtifact) -> int:
    match how:
        case "another file":
            return len(artifact._request("../b", 0, 10))
        case "too much":
            return len(artifact._request("a", 0, 2**40))
    artifact._socket.sendall(b"x" * 10_000)
    return len(artifact._answers.read(1)) or int(artifact.read("a", 0, 1)[0])
