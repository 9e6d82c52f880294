"""The program of a batch worker's pod: start Triton, then score chunks until none is left.

It travels as the text of a command (program.py), so it has the standard library only and runs on Python 3.9 and
newer.
Arguments: the path of the termination message, then Triton's command line. SLIPWAY_BATCH is the plan,
SLIPWAY_CHUNKS_<index> the presigned address of this worker's list of chunks: each address in it is good for
one object. Exit codes: 0 done, 75 the links have expired, 78 it can never work, else it is worth another try.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from deployments.batch.domain.csv_rows import BadRow, lines_of, records, request_of
from deployments.batch.domain.worker_store import (
    ATTEMPTS,
    DETAIL_LENGTH,
    EXPIRED,
    NEVER,
    ONCE_MORE,
    POLL_SECONDS,
    Ended,
    Json,
    Store,
    pause,
    refusal,
)

HOST = "127.0.0.1"
STOPPED = 143
LIST_SECONDS, FRESH_SECONDS = 5, 120
READY_SECONDS = 3600
ANSWER_SECONDS = 300
MESSAGE_BYTES = 4000
LOG_BYTES = 64 * 1024
FIELDS = ("id", "inputs", "outputs", "parameters")


class Server:
    """Triton, and one connection to it for each thread."""

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
                raise Ended(STOPPED, "it was stopped while Triton loaded the model")
            if self.process.poll() is not None:
                raise Ended(1, f"Triton does not load the model: {self.cause()}")
            if time.monotonic() > end:
                raise Ended(1, f"Triton did not load the model within {READY_SECONDS} seconds")
            pause(POLL_SECONDS)

    def is_ready(self) -> bool:
        try:
            return self.send("GET", "/v2/health/ready", b"")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def send(self, method: str, path: str, body: bytes) -> tuple[int, bytes, bool]:
        """The last: whether the answer has binary data."""
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
        """The row of the output: what the model answers, or why it has no answer."""
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            return {"row": number, "error": f"the row is no JSON: {error}"[:DETAIL_LENGTH]}
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
                    raise Ended(1, f"{detail}: {self.cause()}") from None
                continue
            # A full queue empties; what a model cannot answer it cannot answer twice.
            if answer[0] not in ONCE_MORE or (answer[0] == 500 and attempt):
                break
            pause(POLL_SECONDS * 2**attempt)
        if answer[0] == 404:
            raise Ended(NEVER, f"Triton does not serve the model: {error_of(answer[1])}")
        return answer

    def cause(self) -> str:
        lines = self.log.read_bytes()[-LOG_BYTES:].decode(errors="replace").splitlines()
        return " ".join(([t for t in lines if t[:1] == "E"] or lines)[-3:])[:DETAIL_LENGTH]


class Worker:
    """`links` are the newest addresses of each chunk: they end sooner than a large chunk may take."""

    def __init__(self, plan: Json, url: str, stopping: threading.Event) -> None:
        self.plan, self.url, self.stopping = plan, url, stopping
        self.store, self.done = Store(), set[int]()
        self.links: dict[int, Json] = {}
        self.has_more = False
        self.lock = threading.Lock()
        self.read_list()
        threading.Thread(target=self.keep_links_fresh, daemon=True).start()

    @property
    def todo(self) -> list[int]:
        return sorted(set(self.links) - self.done)

    def run(self, server: Server) -> None:
        with ThreadPoolExecutor(self.plan["requests"]) as pool:
            while self.todo or self.has_more:
                for number in self.todo:
                    if self.stopping.is_set():
                        raise Ended(STOPPED, "it was stopped between two chunks")
                    self.score(number, server, pool)
                    self.done.add(number)
                if self.has_more:
                    pause(LIST_SECONDS)
                    self.read_list()

    def read_list(self) -> None:
        with self.lock:
            status, content = self.store.get(self.url)
            if status != 200:
                raise Ended(EXPIRED, f"the list of chunks cannot be read: HTTP {status}")
            work: Json = json.loads(content)
            self.url, self.has_more = work["self"], work["more"]
            self.links.update({chunk["n"]: chunk for chunk in work["chunks"]})

    def keep_links_fresh(self) -> None:
        while True:
            pause(FRESH_SECONDS)
            # What has expired says so where it is used.
            with contextlib.suppress(Ended, OSError, ValueError, KeyError):
                self.read_list()

    def score(self, number: int, server: Server, pool: ThreadPoolExecutor) -> None:
        chunk = self.links[number]
        if self.store.get(chunk["seen"])[0] == 200:
            return
        rows = self.rows_of(chunk)
        failed, first_error = 0, ""
        with tempfile.TemporaryFile() as part:
            for row in pool.map(partial(answer_of, server), count(chunk["first"]), rows):
                if "error" in row:
                    failed += 1
                    first_error = first_error or f"row {row['row']}: {row['error']}"
                part.write(json.dumps(row).encode() + b"\n")
            self.store.put(self.links[number]["put"], part, part.tell())
        mark = {"rows": len(rows), "failed": failed, "error": first_error[:DETAIL_LENGTH]}
        body = json.dumps(mark).encode()
        self.store.put(self.links[number]["mark"], body, len(body))

    def rows_of(self, chunk: Json) -> list[Any]:
        """Requests as JSON; of CSV, a BadRow in the place of what is none."""
        headers = {**chunk["headers"], "Range": f"bytes={chunk['start']}-{chunk['end'] - 1}"}
        status, content = self.store.get(chunk["file"], headers)
        if status not in (200, 206):
            raise refusal("read the input", status, content)
        if status == 200:
            content = content[chunk["start"] : chunk["end"]]
        columns = chunk.get("columns")
        rows: list[Any] = [line for line in content.split(b"\n") if line.strip()]
        if columns:
            parsed = records(lines_of(content), chunk["line"])
            rows = [request_row(body, columns, line) for line, body in parsed if body.strip()]
        if len(rows) != chunk["rows"]:
            raise Ended(NEVER, f"chunk {chunk['n']} has {len(rows)} rows, not {chunk['rows']}")
        return rows


def request_row(body: bytes, columns: list[Any], line: int) -> Any:
    try:
        return json.dumps(request_of(body, columns, line)).encode()
    except BadRow as error:
        return error


def answer_of(server: Server, number: int, row: Any) -> Json:
    if isinstance(row, BadRow):
        return {"row": number, "error": str(row)[:DETAIL_LENGTH]}
    return server.answer(number, row)


def error_of(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])[:DETAIL_LENGTH]
    except (ValueError, KeyError, TypeError):
        return content[:DETAIL_LENGTH].decode(errors="replace")


def run(command: list[str], folder: Path) -> tuple[int, str]:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    plan = json.loads(os.environ["SLIPWAY_BATCH"])
    url = os.environ[f"SLIPWAY_CHUNKS_{os.environ['JOB_COMPLETION_INDEX']}"]
    server = None
    try:
        worker = Worker(plan, url, stopping)
        if worker.todo or worker.has_more:
            # Another attempt at this index may have left nothing: then no model is loaded.
            server = Server(command, plan, folder)
            server.wait_until_ready(stopping)
            worker.run(server)
    except Ended as end:
        return end.code, end.detail
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        return 1, f"the program of the worker failed: {type(error).__name__}: {error}"
    finally:
        if server is not None:
            server.process.kill()
            server.process.wait()
    return 0, ""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        code, detail = run(sys.argv[2:], Path(name))
    Path(sys.argv[1]).write_text(json.dumps({"code": code, "detail": detail})[:MESSAGE_BYTES])
    sys.exit(code)


if __name__ == "__main__":
    main()
