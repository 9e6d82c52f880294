"""The numbered objects that a queue worker writes by presigned addresses: a part of its program.

All workers of a job share the numbers: an address creates its object or finds it there (program.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
import threading
import zipfile
from pathlib import Path

from deployments.batch.domain.worker_store import EXPIRED, NEVER, Json, Store, WorkerEnded, pause

OUTBOX_SECONDS, OUTBOX_FRESH_SECONDS = 5, 120
OUTBOX_READS = 60
MOST_WRITERS = 64


class Outbox:
    """The addresses of `parts` (answers as JSON lines) and `reports` (what was done) by number, for one use each."""

    def __init__(self, url: str, stopping: threading.Event) -> None:
        self.url, self.stopping = url, stopping
        self.store, self.lock = Store(), threading.Lock()
        self.library = ""
        self.free: dict[str, dict[int, str]] = {"parts": {}, "reports": {}}
        self.used = {"parts": -1, "reports": -1}
        # Addresses to read parts that may have no report yet, by number; read ones are left out.
        self.readable: dict[int, str] = {}
        self.read: set[int] = set()
        self.read_list()
        threading.Thread(target=self.keep_fresh, daemon=True).start()

    def read_list(self) -> None:
        with self.lock:
            status, content = self.store.get(self.url)
            if status != 200:
                raise WorkerEnded(EXPIRED, f"the list of addresses cannot be read: HTTP {status}")
            work: Json = json.loads(content)
            self.url, self.library = work["self"], work.get("library", "")
            for kind in self.free:
                numbered = {item["n"]: item["put"] for item in work[kind]}
                self.free[kind] = {n: u for n, u in numbered.items() if n > self.used[kind]}
            parts = (*work["unreported"], *work["parts"])
            self.readable = {item["n"]: item["get"] for item in parts}

    def load_library(self, digest: str, folder: Path) -> None:
        """Make the library importable. Raises Ended if it is not the one that the plan names."""
        status, content = self.store.get(self.library)
        if status != 200:
            raise WorkerEnded(EXPIRED, f"the library of the worker cannot be read: HTTP {status}")
        if hashlib.sha256(content).hexdigest() != digest:
            raise WorkerEnded(NEVER, "the library of the worker is not what the job names")
        # Unpacked, because some read files beside their modules.
        unpacked = folder / "library"
        zipfile.ZipFile(io.BytesIO(content)).extractall(unpacked)
        sys.path.insert(0, str(unpacked))

    def keep_fresh(self) -> None:
        while True:
            pause(OUTBOX_FRESH_SECONDS)
            # What has expired says so where it is used.
            with contextlib.suppress(WorkerEnded, OSError, ValueError, KeyError):
                self.read_list()

    def create(self, kind: str, body: bytes) -> int:
        """Create the next object and return its number. Raises Ended if no address is left."""
        for _ in range(OUTBOX_READS):
            while (taken := self.take(kind)) is not None:
                number, url = taken
                if self.store.put(url, body, len(body)):
                    if kind == "parts":
                        self.read.add(number)
                    return number
            pause(OUTBOX_SECONDS)
            self.read_list()
        raise WorkerEnded(EXPIRED, f"there is no address left for {kind}")

    def take(self, kind: str) -> tuple[int, str] | None:
        with self.lock:
            if not self.free[kind]:
                return None
            number = min(self.free[kind])
            self.used[kind] = number
            return number, self.free[kind].pop(number)

    def list_unreported(self) -> list[tuple[int, list[str]]]:
        """Return parts of others that had no report when the list was written, with the ids of their messages. Once
        each.
        """
        with self.lock:
            addresses = sorted((n, u) for n, u in self.readable.items() if n not in self.read)
        found, misses = [], 0
        for number, url in addresses:
            status, content = self.store.get(url)
            # As many workers may write one at this moment.
            misses = 0 if status == 200 else misses + 1
            if misses > MOST_WRITERS:
                break
            if status == 200:
                self.read.add(number)
                lines = content.splitlines()
                found.append((number, [str(json.loads(line)["message"]) for line in lines]))
        return found
