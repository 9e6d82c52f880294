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
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from deployments.batch.domain.csv_rows import BadRow, lines_of, records, request_of
from deployments.batch.domain.worker_end import run_and_exit
from deployments.batch.domain.worker_server import STOPPED, Server
from deployments.batch.domain.worker_store import (
    DETAIL_LENGTH,
    EXPIRED,
    NEVER,
    Json,
    Store,
    WorkerEnded,
    pause,
    refusal,
)

LIST_SECONDS, FRESH_SECONDS = 5, 120


class Worker:
    """A worker of chunks. `links` are the newest addresses of each chunk: they end sooner than a large chunk may
    take.
    """

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
                        raise WorkerEnded(STOPPED, "it was stopped between two chunks")
                    self.score(number, server, pool)
                    self.done.add(number)
                if self.has_more:
                    pause(LIST_SECONDS)
                    self.read_list()

    def read_list(self) -> None:
        with self.lock:
            status, content = self.store.get(self.url)
            if status != 200:
                raise WorkerEnded(EXPIRED, f"the list of chunks cannot be read: HTTP {status}")
            work: Json = json.loads(content)
            self.url, self.has_more = work["self"], work["more"]
            self.links.update({chunk["n"]: chunk for chunk in work["chunks"]})

    def keep_links_fresh(self) -> None:
        while True:
            pause(FRESH_SECONDS)
            # What has expired says so where it is used.
            with contextlib.suppress(WorkerEnded, OSError, ValueError, KeyError):
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
        """Return requests as JSON. In CSV a row that is no request is a BadRow."""
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
            raise WorkerEnded(
                NEVER, f"chunk {chunk['n']} has {len(rows)} rows, not {chunk['rows']}"
            )
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
    except WorkerEnded as end:
        return end.code, end.detail
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        return 1, f"the program of the worker failed: {type(error).__name__}: {error}"
    finally:
        if server is not None:
            server.stop()
    return 0, ""


if __name__ == "__main__":
    run_and_exit(run)
