"""Open a file with a pickle: as it is, or compressed as joblib writes it, within bounds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, Any, Final

from deployments.registry.domain.pickles import symbolic
from deployments.registry.domain.pickles.symbolic import PickleReading

_EXPANDS_AT_MOST: Final = 50
_ALWAYS_ALLOWED_BYTES: Final = 64 * 2**20
_CHUNK_BYTES: Final = 2**20
_ZLIB: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


class CannotOpen(Exception):
    """The file cannot be read to its end; the message says why."""


def read_pickle(path: str) -> PickleReading:
    try:
        with Path(path).open("rb") as file:
            opened, size = expand(file, Path(path).stat().st_size)
            return symbolic.read(opened, size=size)
    except CannotOpen as error:
        return PickleReading(None, (), problem=str(error))


def write_opcodes(file: IO[bytes], size: int, target: Path) -> None:
    """Write the uncompressed pickle without the raw arrays between its opcodes, for scanners that know
    neither. Raises CannotOpen, and OSError where it is larger than a file may be.
    """
    with target.open("wb") as copy:
        opened, length = expand(file, size)
        arrays = symbolic.read(opened, size=length).arrays
        opened.seek(0)
        for begin, end in (*arrays, (length, length)):
            while (count := min(begin - opened.tell(), _CHUNK_BYTES)) > 0:
                copy.write(opened.read(count))
            opened.seek(end)


def expand(file: IO[bytes], size: int) -> tuple[IO[bytes], int]:
    """Return the uncompressed file and its size. Raises CannotOpen."""
    head = file.read(8)
    file.seek(0)
    reader = _decompressor(head, file)
    if reader is None:
        return file, size
    allowed = max(_ALWAYS_ALLOWED_BYTES, size * _EXPANDS_AT_MOST)
    body = io.BytesIO()
    try:
        while chunk := reader.read(_CHUNK_BYTES):
            body.write(chunk)
            if body.tell() > allowed:
                raise CannotOpen(f"it expands to more than {allowed // 2**20:,} MiB")
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise CannotOpen(f"its compression is damaged: {str(error)[:80]}") from error
    length = body.tell()
    body.seek(0)
    return body, length


def _decompressor(head: bytes, file: IO[bytes]) -> Any:
    if head.startswith(_ZLIB):
        return _ZlibReader(file)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if head.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        return lzma.LZMAFile(file)
    if head.startswith(b"\x04\x22\x4d\x18"):
        raise CannotOpen(
            "it is compressed with LZ4; save it with joblib.dump(model, path, compress=3)"
        )
    return None


class _ZlibReader:
    """A stream of zlib, which the standard library reads only at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._stream = file, zlib.decompressobj()

    def read(self, length: int) -> bytes:
        while not self._stream.eof:
            pending = self._stream.unconsumed_tail or self._file.read(_CHUNK_BYTES)
            if not pending:
                raise EOFError("it ends early")
            if chunk := self._stream.decompress(pending, length):
                return chunk
        return b""
