"""Start the local Triton on a repository, wait until it serves it, and send it requests."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import select
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway_localcluster.controllers import (
    free_ports,
    model_repository,
    processes,
    triton,
    triton_container,
)
from slipway_localcluster.load_test import confinement, memory, messages

Result = dict[str, Any]
_POLL_SECONDS = 0.1
_WARM_REQUESTS = 5
# Of the limits on processor time and the size of files, and of the OOM killer.
_LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ, signal.SIGKILL)
_MEMORY_CHECK_SECONDS = 0.3
_LOG = "log"
# Outcomes that may come from a machine without processor time.
_MAYBE_STARVED = ("not_loaded", "crashed", "not_answered")


@dataclass(frozen=True, slots=True)
class TrialLimits:
    memory_mib: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    header_bytes: int

    def describe_outputs(self) -> list[Result]:
        outputs = json.loads(self.body[: self.header_bytes] or self.body)["outputs"]
        return [{key: item[key] for key in ("name", "datatype", "shape")} for item in outputs]


class _Stopped(Exception):
    """A limit was reached. `outcome` is too_large or late."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome


def run(folder: Path, model: str, limits: TrialLimits) -> Result:
    """Run the load test, and return outcome and detail, and what was measured. The outcome is `starved` instead of
    a failure that Triton also has where it gets no processor time; `failure` is then the outcome without that
    doubt.
    """
    started = time.monotonic()
    try:
        installation = triton.install(folder / "installed")
    except triton.TritonUnavailable as error:
        return {"outcome": "no_runtime", "detail": str(error)}
    missing = _missing_runtime(folder / "models")
    if missing:
        return {"outcome": "no_runtime", "detail": missing}
    with _started(installation, folder) as (process, port):
        result = _Trial(process, port, folder, limits, started).run(model)
    log = folder / _LOG
    if result["outcome"] in _MAYBE_STARVED and messages.is_of_a_busy_machine(log, result["detail"]):
        failure = "late" if messages.is_never_of_the_model(log) else result["outcome"]
        return {**result, "outcome": "starved", "failure": failure}
    return result


def _missing_runtime(repository: Path) -> str:
    """Prepare the repository for this Triton. Returns what a model needs that this Triton lacks; empty if nothing."""
    model_repository.prepare(repository)
    for folder in sorted(item for item in repository.iterdir() if item.is_dir()):
        config = model_repository.read_config(folder / model_repository.CONFIG_FILE)
        is_ensemble = config.HasField("ensemble_scheduling")
        if config.backend != "python" and not is_ensemble:
            return f"the Triton here lacks the backend {config.backend or config.platform}"
        if "EXECUTION_ENV_PATH" in config.parameters:
            return f"{folder.name} brings a Python environment, which is not unpacked here"
    return ""


@contextlib.contextmanager
def _started(
    installation: triton.Installation, folder: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start Triton, and yield its process and its port. It is killed at the end, and so are its children."""
    prefix = f"slipway-load-test-{os.getpid()}-"
    launch = triton.plan_launch(
        installation,
        ["tritonserver", "--model-repository=/models"],
        resolve=lambda _: folder / "models",
        choose_ports=free_ports.take,
        shared_memory_prefix=prefix,
        known=frozenset({"model-repository"}),
    )
    with (folder / _LOG).open("wb") as log:
        process = subprocess.Popen(
            launch.command,
            env=dict(installation.environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=confinement.end_with_parent,  # noqa: PLW1509  there are no threads
        )
    try:
        yield process, launch.http_port
    finally:
        # Its children are in its PID namespace, or else in the group that the caller kills.
        process.kill()
        process.wait()
        triton_container.remove_shared_memory(prefix)


class _Trial:
    """One running Triton."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        port: int,
        folder: Path,
        limits: TrialLimits,
        started: float,
    ) -> None:
        self._process, self._port, self._folder = process, port, folder
        self._limits, self._deadline = limits, started + limits.seconds
        self._peak_mib = 0
        self._measured_at = 0.0
        self._phase = "load"

    def run(self, model: str) -> Result:
        result: Result = {}
        try:
            started = time.monotonic()
            if not self._wait_until_ready():
                return self._failed("not_loaded", self._log())
            # To the digit that is shown: rounded twice, two places could show two figures.
            result["load_seconds"] = round(time.monotonic() - started, 1)
            self._phase = "answer"
            result |= self._send(model)
            self._check_memory()
        except _Stopped as stopped:
            result |= {"outcome": stopped.outcome, "detail": str(stopped)}
        return result | {"memory_mib": self._peak_mib}

    def _wait_until_ready(self) -> bool:
        while self._process.poll() is None:
            self._check_limits()
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self._request("GET", "/v2/health/ready").status == 200:
                    return True
            time.sleep(_POLL_SECONDS)
        return False

    def _send(self, model: str) -> Result:
        detail = ""
        files = list((self._folder / "requests").iterdir())
        if not files:
            return {"outcome": "no_request", "detail": "no request can be generated for its inputs"}
        for file in sorted(files, key=lambda item: int(item.name.split("-")[0])):
            try:
                answer, first_ms = self._infer(model, file)
                if answer.status == 200:
                    warm_ms = statistics.median(
                        self._infer(model, file)[1] for _ in range(_WARM_REQUESTS)
                    )
                    times = {"first_ms": round(first_ms, 1), "warm_ms": round(warm_ms, 1)}
                    outputs = {"outputs": answer.describe_outputs()}
                    answered = {"outcome": "answered", "detail": "", **times, **outputs}
                    return answered | self._answer_sample(model)
            except (ConnectionError, http.client.HTTPException):
                return self._failed("crashed", self._log())
            detail = messages.describe_answer(answer.body, self._folder)
        return self._failed("not_answered", detail)

    def _answer_sample(self, model: str) -> Result:
        """Return the answers to all requests of `sample/`, joined. Empty without that folder."""
        folder, answers = self._folder / "sample", []
        if not folder.exists():
            return {}
        for file in sorted(folder.iterdir(), key=lambda item: int(item.name.split("-")[0])):
            answer, _ = self._infer(model, file)
            if answer.status != 200:
                return self._failed(
                    "not_answered", messages.describe_answer(answer.body, self._folder)
                )
            answers.append(answer.body[answer.header_bytes :])
        return {"sample_answers": base64.b64encode(b"".join(answers)).decode()}

    def _infer(self, model: str, file: Path) -> tuple[_Answer, float]:
        """Return the answer, and its latency in milliseconds."""
        headers = {"Inference-Header-Content-Length": file.name.split("-")[1]}
        body = file.read_bytes()
        started = time.perf_counter()
        answer = self._request("POST", f"/v2/models/{model}/infer", body, headers)
        return answer, (time.perf_counter() - started) * 1000

    def _failed(self, outcome: str, detail: str) -> Result:
        if messages.is_out_of_memory(detail):
            outcome, detail = "too_large", self._too_large()
        return {"outcome": outcome, "detail": detail}

    def _log(self) -> str:
        code = self._process.poll()
        if code is not None and -code in _LIMIT_SIGNALS:
            return f"Triton was ended by {signal.Signals(-code).name}"
        return messages.summarize_log(self._folder / _LOG, self._folder)

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> _Answer:
        """Raises _Stopped when a limit is reached before there is an answer."""
        connection = http.client.HTTPConnection(
            processes.LOCALHOST, self._port, timeout=max(self._deadline - time.monotonic(), 0.1)
        )
        try:
            connection.request(method, path, body, headers or {})
            while not select.select([connection.sock], [], [], _POLL_SECONDS)[0]:
                self._check_limits()
            response = connection.getresponse()
            length = response.headers.get("Inference-Header-Content-Length", "0")
            return _Answer(response.status, response.read(), int(length))
        except TimeoutError as error:
            raise self._late() from error
        finally:
            connection.close()

    def _check_limits(self) -> None:
        if time.monotonic() > self._deadline:
            raise self._late()
        if time.monotonic() - self._measured_at > _MEMORY_CHECK_SECONDS:
            self._check_memory()

    def _check_memory(self) -> None:
        self._measured_at = time.monotonic()
        self._peak_mib = max(self._peak_mib, memory.resident_mib(self._process.pid))
        if self._peak_mib > self._limits.memory_mib:
            raise _Stopped("too_large", self._too_large())

    def _too_large(self) -> str:
        return f"it needed more than {self._limits.memory_mib:,} MiB of memory"

    def _late(self) -> _Stopped:
        return _Stopped(
            "late", f"it did not {self._phase} within {self._limits.seconds:.0f} seconds"
        )
