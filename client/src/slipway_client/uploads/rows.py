"""A file of rows for a batch job: sent in parts, straight to the object store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx

from slipway_client.connection import Connection, RetryPolicy
from slipway_client.decoding import decode
from slipway_client.errors import ApiError, Conflict, InvalidInput
from slipway_client.types import BatchUpload, Parts, PartUrl
from slipway_client.uploads import local_files
from slipway_client.uploads.part_store import Part, PartStore
from slipway_client.uploads.progress import Progress
from slipway_client.uploads.sending import Missing, Sender

_ROUNDS: Final = 4
_TO_SEND_AGAIN: Final = frozenset({"parts_missing", "parts_refused"})


@dataclass(frozen=True, slots=True)
class RowsUpload:
    """An upload of a file of rows. `transport` replaces the network to the object store."""

    connection: Connection
    progress: Progress
    retry: RetryPolicy
    transport: httpx.BaseTransport | None = None
    parallel: int = 4

    def run(self, path: Path, team: str) -> BatchUpload:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder. Name one file of rows.")
        (file,) = local_files.collect(path)
        body = {
            "team": team,
            "filename": path.name,
            "size_bytes": file.size_bytes,
            "part_checksums": True,
        }
        upload = decode(BatchUpload, self.connection.post("batch-uploads", body))
        # As the portal names it.
        file = replace(file, path=upload.path)
        for round_number in range(1, _ROUNDS + 1):
            self._send(upload, file)
            try:
                return self._complete(upload)
            except Conflict as error:
                if error.code not in _TO_SEND_AGAIN or round_number == _ROUNDS:
                    raise
        raise AssertionError  # the last round returns or raises

    def _send(self, upload: BatchUpload, file: local_files.LocalFile) -> None:
        place = f"batch-uploads/{upload.id}/parts"
        parts = decode(Parts, self.connection.get(place))
        missing = Missing(file, parts.part_size, parts.missing)
        self.progress.begin("send", file.size_bytes)
        self.progress.advance("send", file.size_bytes - missing.size_bytes)

        def sign(unsigned: Sequence[Part]) -> list[PartUrl]:
            checksums = {str(part.number): part.checksum for part in unsigned}
            body = {"numbers": [part.number for part in unsigned], "checksums": checksums}
            return [decode(PartUrl, row) for row in self.connection.post(place, body)]

        store = PartStore(
            self.retry, lambda count: self.progress.advance("send", count), self.transport
        )
        try:
            Sender(store, sign, lambda _: None, self.parallel).run([missing])
        finally:
            store.close()

    def _complete(self, upload: BatchUpload) -> BatchUpload:
        while True:
            try:
                answer = self.connection.post(f"batch-uploads/{upload.id}/complete")
            except ApiError as error:
                # The store may join the parts for longer than one request is repeated.
                if error.code != "assembling":
                    raise
            else:
                return decode(BatchUpload, answer)
