"""The program that loads models: real Triton, models that misbehave, and what is left of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from slipway_localcluster.load_test import messages
from tests.waiting import wait_for

CONFIG = """\
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
CODE = """\
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        INITIALIZE

    def execute(self, requests):
        EXECUTE
        inputs = [pb_utils.get_input_tensor_by_name(item, "x").as_numpy() for item in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]) for x in inputs]
"""
ESCAPE = """\
if os.fork() == 0:
            os.setsid()
            open("FILE", "w").write("started")
            time.sleep(1000)"""


# What is left of Triton's process for Python models where it gets no processor time.
STARVED = """\
os.mkdir(f"FOLDER/{len(os.listdir('FOLDER'))}")
        if len(os.listdir("FOLDER")) <= TIMES:
            os._exit(1)"""


def folder_of(
    tmp_path: Path, *, initialize: str = "pass", execute: str = "pass", config: str = CONFIG
) -> Path:
    version = tmp_path / "models" / "m" / "1"
    version.mkdir(parents=True)
    version.parent.joinpath("config.pbtxt").write_text(config)
    code = CODE.replace("INITIALIZE", initialize).replace("EXECUTE", execute)
    version.joinpath("model.py").write_text(code)
    body = np.arange(4, dtype=np.float32).tobytes()
    given = {"name": "x", "datatype": "FP32", "shape": [4], "parameters": {"binary_data_size": 16}}
    head = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
    requests = tmp_path / "requests"
    requests.mkdir()
    requests.joinpath(f"0-{len(head)}").write_bytes(head + body)
    return tmp_path


def command_of(folder: Path, *, memory_mib: int = 1024, seconds: float = 100) -> list[str]:
    options = [
        f"--folder={folder}",
        "--model=m",
        f"--memory-mib={memory_mib}",
        f"--seconds={seconds}",
    ]
    return [sys.executable, "-m", "slipway_localcluster.load_test", *options]


def load(folder: Path, **limits: Any) -> dict[str, Any]:
    finished = subprocess.run(
        command_of(folder, **limits), capture_output=True, text=True, timeout=250, check=False
    )
    assert finished.returncode == 0, finished.stderr
    result: dict[str, Any] = json.loads(finished.stdout)
    return result


def processes_of(folder: Path) -> list[int]:
    """Processes with this folder in their command line or as working folder."""
    pids = []
    for process in psutil.process_iter():
        try:
            texts = [*process.cmdline(), process.cwd()]
        except psutil.Error:
            continue
        if any(str(folder) in text for text in texts):
            pids.append(process.pid)
    return pids


def test_a_model_is_loaded_and_answers_and_nothing_is_left(tmp_path: Path) -> None:
    trace = tmp_path / "escaped"
    folder = folder_of(tmp_path, initialize=ESCAPE.replace("FILE", str(trace)))

    result = load(folder)

    assert result["outcome"] == "answered", result
    assert result["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [4]}]
    assert 20 < result["memory_mib"] < 1024
    assert 0 < result["warm_ms"] <= result["first_ms"] * 2
    assert trace.read_text() == "started"
    assert processes_of(folder) == []
    assert not list(Path("/dev/shm").glob("slipway-load-test-*"))


@pytest.mark.parametrize(
    ("model", "limits", "outcome", "detail"),
    [
        (
            {"initialize": "raise ValueError('no weights in ' + args['model_name'])"},
            {},
            "not_loaded",
            "failed to load 'm' version 1: Internal: ValueError: no weights in m",
        ),
        (
            {"execute": "raise RuntimeError('4 columns')"},
            {},
            "not_answered",
            "Failed to process the request(s) for model 'm_0_0', message: RuntimeError: 4 columns",
        ),
        (
            {"execute": "while True: time.sleep(1)"},
            {"seconds": 20},
            "late",
            "it did not answer within 20 seconds",
        ),
        (
            {"initialize": "self.x = [np.ones(2**24) for _ in range(64) if not time.sleep(0.05)]"},
            {"memory_mib": 512},
            "too_large",
            "it needed more than 512 MiB of memory",
        ),
        (
            {"initialize": "self.x = np.ones(2**34)"},
            {"memory_mib": 512},
            "too_large",
            "it needed more than 512 MiB of memory",
        ),
        (
            {"config": CONFIG.replace("python", "dali")},
            {},
            "no_runtime",
            "the Triton here lacks the backend dali",
        ),
    ],
    ids=["raises", "answers an error", "hangs", "grows", "grows at once", "another backend"],
)
def test_a_model_that_misbehaves(
    tmp_path: Path, model: dict[str, str], limits: dict[str, float], outcome: str, detail: str
) -> None:
    folder = folder_of(tmp_path, **model)

    result = load(folder, **limits)

    assert (result["outcome"], result["detail"]) == (outcome, detail)
    assert processes_of(folder) == []


@pytest.mark.parametrize(
    ("times", "outcome", "detail"), [(2, "answered", ""), (9, "not_loaded", "is not healthy")]
)
def test_what_may_be_for_lack_of_processor_time_is_tried_three_times(
    tmp_path: Path, times: int, outcome: str, detail: str
) -> None:
    starts = tmp_path / "starts"
    starts.mkdir()
    code = STARVED.replace("FOLDER", str(starts)).replace("TIMES", str(times))
    folder = folder_of(tmp_path, initialize=code)

    result = load(folder)

    assert (result["outcome"], detail in result["detail"]) == (outcome, True), result
    assert "failure" not in result
    assert len(list(starts.iterdir())) == 3
    assert processes_of(folder) == []


def test_a_lock_that_comes_late_is_never_of_the_model(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "terminate called after throwing an instance of 'boost::interprocess::lock_exception'\n"
    )

    assert messages.is_of_a_busy_machine(log, "ended")
    assert messages.is_never_of_the_model(log)
    log.write_text("Stub process 'm_0_0' is not healthy.")
    assert messages.is_of_a_busy_machine(log, "ended")
    assert not messages.is_never_of_the_model(log)


def test_a_damaged_file_is_not_loaded_with_the_runtimes_message(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, config=CONFIG.replace("python", "onnxruntime"))
    version = folder / "models" / "m" / "1"
    (version / "model.py").unlink()
    (version / "model.onnx").write_bytes(b"\x08\x08\x12\x07damaged")

    result = load(folder)

    assert (result["outcome"], result["detail"]) == (
        "not_loaded",
        "failed to load 'm' version 1: Internal: InvalidArgument: [ONNXRuntimeError] : 2 : "
        "INVALID_ARGUMENT : Load model from m/1/model.onnx failed:No graph was found in the protobuf.",
    )


def test_it_ends_with_its_caller(tmp_path: Path) -> None:
    """The caller is killed while Triton loads the model."""
    trace = tmp_path / "loading"
    folder = folder_of(tmp_path, initialize=f"open({str(trace)!r}, 'w').close(); time.sleep(1000)")
    caller = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import subprocess; subprocess.run({command_of(folder)!r}, start_new_session=True)",
        ]
    )
    wait_for("the model is being loaded", trace.exists)
    assert processes_of(folder)

    caller.send_signal(signal.SIGKILL)
    caller.wait()

    wait_for("no process is left", lambda: not processes_of(folder))


def test_models_reach_no_network(tmp_path: Path) -> None:
    code = (
        "import socket; interfaces = [name for _, name in socket.if_nameindex()]; "
        "raise ValueError(interfaces)"
    )
    result = load(folder_of(tmp_path, initialize=code))

    assert result["detail"].endswith("ValueError: ['lo']")
