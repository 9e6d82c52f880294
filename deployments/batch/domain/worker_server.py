"""Triton as the programs of batch pods start and ask it: a part of them (program.py)."""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import time
from pathlib import Path

from deployments.batch.domain.worker_store import (
    ATTEMPTS,
    DETAIL_LENGTH,
    NEVER,
    ONCE_MORE,
    POLL_SECONDS,
    Json,
    WorkerEnded,
    pause,
)

HOST = "127.0.0.1"
STOPPED = 143
READY_SECONDS = 3600
ANSWER_SECONDS = 300
LOG_BYTES = 64 * 1024
FIELDS = ("id", "inputs", "outputs", "parameters")


class Server:
    """A running Triton, with one connection to it for each thread."""

    def __init__(self, command: list[str], plan: Json, folder: Path) -> None:
        self.path = f"/v2/models/{plan['model']}/infer"
        flag = "--http-port="
        self.port = int(next(item for item in command if item.startswith(flag))[len(flag) :])
        self.log, self.local = folder / "log", threading.local()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603  Triton's, of the Job
                command, stdout=log, stderr=subprocess.STDOUT
            )

    def wait_until_ready(self, stopping: threading.Event) -> None:
        end = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if stopping.is_set():
                raise WorkerEnded(STOPPED, "it was stopped while Triton loaded the model")
            if self.process.poll() is not None:
                raise WorkerEnded(1, f"Triton does not load the model: {self.cause()}")
            if time.monotonic() > end:
                raise WorkerEnded(
                    1, f"Triton did not load the model within {READY_SECONDS} seconds"
                )
            pause(POLL_SECONDS)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def is_ready(self) -> bool:
        try:
            return self.send("GET", "/v2/health/ready", b"")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def send(self, method: str, path: str, body: bytes) -> tuple[int, bytes, bool]:
        """Send a request. The last value of the result is whether the answer has binary data."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_SECONDS)
            self.local.connection = connection
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            self.local.connection = None
            raise
        return response.status, content, "Inference-Header-Content-Length" in response.headers

    def answer(self, number: int, line: bytes) -> Json:
        """Return the row of the output: what the model answers, or why it has no answer."""
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            return {"row": number, "error": f"the row is not JSON: {error}"[:DETAIL_LENGTH]}
        if not isinstance(request, dict) or not isinstance(request.get("inputs"), list):
            return {"row": number, "error": 'the row has no "inputs" of the inference protocol'}
        body = json.dumps({name: request[name] for name in FIELDS if name in request}).encode()
        row: Json = {"row": number, **({"id": request["id"]} if "id" in request else {})}
        status, content, is_binary = self.ask(body)
        if status == 200 and not is_binary:
            return {**row, "outputs": json.loads(content)["outputs"]}
        if is_binary:
            return {**row, "error": "the row requests binary data, which JSON lines cannot hold"}
        return {**row, "error": error_of(content)}

    def ask(self, body: bytes) -> tuple[int, bytes, bool]:
        for attempt in range(ATTEMPTS):
            try:
                answer = self.send("POST", self.path, body)
            except (OSError, http.client.HTTPException) as error:
                pause(POLL_SECONDS)
                if self.process.poll() is not None or attempt == ATTEMPTS - 1:
                    detail = f"Triton ended while it answered ({type(error).__name__})"
                    raise WorkerEnded(1, f"{detail}: {self.cause()}") from None
                continue
            # A full queue empties; what a model cannot answer it cannot answer twice.
            if answer[0] not in ONCE_MORE or (answer[0] == 500 and attempt):
                break
            pause(POLL_SECONDS * 2**attempt)
        if answer[0] == 404:
            raise WorkerEnded(NEVER, f"Triton does not serve the model: {error_of(answer[1])}")
        return answer

    def cause(self) -> str:
        lines = self.log.read_bytes()[-LOG_BYTES:].decode(errors="replace").splitlines()
        return " ".join(([t for t in lines if t[:1] == "E"] or lines)[-3:])[:DETAIL_LENGTH]


def error_of(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])[:DETAIL_LENGTH]
    except (ValueError, KeyError, TypeError):
        return content[:DETAIL_LENGTH].decode(errors="replace")
