"""Copy files from an HTTP server into the store: part by part, in bounded memory, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from deployments.imports.domain.errors import SourceChanged, SourceUnavailable
from deployments.imports.gateways.remote_files import RemoteFile
from deployments.imports.services.progress import ImportProgress
from deployments.models import ArtifactFile, ImportedFile
from deployments.registry.gateways import object_store
from deployments.registry.services import file_uploads
from deployments.registry.services.file_uploads import PartsState

MIB: Final = 2**20
_PART_BYTES: Final = 8 * MIB
# S3 allows 10,000.
_MAX_PARTS: Final = 5000
# A part that takes longer is read again later.
PART_SECONDS: Final = 600
Open = Callable[[int], AbstractContextManager[RemoteFile]]


def part_bytes(size_bytes: int) -> int:
    """Return the size of the parts: 8 MiB, for 50 GiB 11 MiB. One part is in memory at a time."""
    needed = -(-size_bytes // _MAX_PARTS)
    return max(_PART_BYTES, -(-needed // MIB) * MIB)


def copy(
    file: ArtifactFile, origin: ImportedFile, open_from: Open, progress: ImportProgress
) -> None:
    """Copy the missing parts of a file into the store. `open_from` opens the body at a byte. Raises
    SourceChanged if the file is not the listed one.
    """
    file_uploads.open_upload(file, with_part_checksums=False)
    state = file_uploads.parts_state(file)
    # What the server has now cannot be compared with what was stored before: copy the whole file.
    missing = state.missing if origin.etag else list(range(1, state.plan.count + 1))
    if not state.is_assembled and missing:
        _copy_parts(file, origin, open_from, progress, state, missing)
    file_uploads.assemble(file)


def _copy_parts(
    file: ArtifactFile,
    origin: ImportedFile,
    open_from: Open,
    progress: ImportProgress,
    state: PartsState,
    missing: list[int],
) -> None:
    plan, store = state.plan, object_store.store()
    first = missing[0]
    begin = (first - 1) * plan.part_bytes
    progress.add(begin)
    with open_from(begin) as remote:
        _require_listed(file, origin, remote)
        reader = _Reader(remote, file, progress)
        reader.skip(begin - remote.start)
        for number in range(first, plan.count + 1):
            body = reader.read(plan.bytes_of(number))
            if number in missing:
                store.put_part(file.key, file.upload_id, number, body)
            progress.add(len(body))
            progress.part_done()
        reader.require_end()


def _require_listed(file: ArtifactFile, origin: ImportedFile, remote: RemoteFile) -> None:
    is_same = not (origin.etag and remote.validator) or origin.etag == remote.validator
    if not is_same or remote.size_bytes not in (-1, file.size_bytes):
        raise SourceChanged(f"{file.path} was replaced on the server after it was listed.")


class _Reader:
    """A reader that returns exact counts of bytes from chunks of any size."""

    def __init__(self, remote: RemoteFile, file: ArtifactFile, progress: ImportProgress) -> None:
        self._chunks: Iterator[bytes] = remote.chunks()
        self._left = b""
        self._path = file.path
        self._progress = progress

    def skip(self, count: int) -> None:
        """Read and drop, where the server ignores ranges."""
        while count > 0:
            count -= len(self.read(min(count, _PART_BYTES)))

    def read(self, count: int) -> bytes:
        until = time.monotonic() + PART_SECONDS
        pieces, length = [self._left], len(self._left)
        while length < count:
            self._progress.keep_alive()
            if time.monotonic() > until:
                raise SourceUnavailable(f"The server sends {self._path} too slowly.")
            chunk = next(self._chunks, None)
            if chunk is None:
                raise SourceUnavailable(f"The server sent less of {self._path} than it said.")
            pieces.append(chunk)
            length += len(chunk)
        body = b"".join(pieces)
        self._left = body[count:]
        return body[:count]

    def require_end(self) -> None:
        if self._left or any(self._chunks):
            raise SourceChanged(f"{self._path} is longer than the server said.")
