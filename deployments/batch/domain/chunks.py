"""Cutting files of JSON lines into chunks of whole rows. Pure: no row is read twice, none is kept.

A row is a line that is not blank. Rows are numbered from 1 through all files in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from portal.core.definitions import Rejected

MAX_ROW_BYTES: Final = 1 << 20
MAX_CHUNKS: Final = 10_000
MAX_FILES: Final = 1000
MAX_TOTAL_BYTES: Final = 100 * 2**30
# Lost and repeated when a node is reclaimed: the work of a minute or so.
_ROWS: Final = 10_000
_LARGEST_BYTES: Final = 16 << 20
_SMALLEST_BYTES: Final = 32 << 10
# So that a worker which is slower than the others holds nobody up.
_CHUNKS_PER_WORKER: Final = 8


@dataclass(frozen=True, slots=True)
class InputFile:
    """One version of an object: `version_id` is empty where the bucket keeps none."""

    bucket: str
    key: str
    version_id: str
    etag: str
    size_bytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            "bucket": self.bucket,
            "key": self.key,
            "version_id": self.version_id,
            "etag": self.etag,
            "size_bytes": self.size_bytes,
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes [start, end) of a file, which hold `rows` rows; the first is `first_row`."""

    file: int
    start: int
    end: int
    rows: int
    first_row: int


def chunk_bytes(total_bytes: int, *, workers: int) -> int:
    """About how many bytes a chunk gets."""
    even = total_bytes // (workers * _CHUNKS_PER_WORKER)
    return max(_SMALLEST_BYTES, min(_LARGEST_BYTES, even))


def cut(
    blocks: Iterable[bytes], *, name: str, file: int, first_row: int, target_bytes: int
) -> Iterator[Chunk]:
    """Chunks of one file. Raises Rejected for a row that is too large, with its number.

    Blank lines belong to the chunk before them, or to the first one.
    """
    start = position = rows = 0
    row = first_row
    for line in _lines(blocks, name):
        position += len(line)
        if line.strip():
            rows += 1
        if rows and (position - start >= target_bytes or rows >= _ROWS):
            yield Chunk(file, start, position, rows, row)
            row, start, rows = row + rows, position, 0
    if rows:
        yield Chunk(file, start, position, rows, row)


def _lines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """With their line ends."""
    rest, number = b"", 0
    for block in blocks:
        parts = _split(rest + block)
        rest = b"" if not parts or parts[-1].endswith(b"\n") else parts.pop()
        for line in parts:
            number += 1
            _check(line, name, number)
            yield line
        _check(rest, name, number + 1)
    if rest:
        yield rest


def _split(text: bytes) -> list[bytes]:
    """At line feeds only: a carriage return ends no row."""
    parts = text.split(b"\n")
    last = parts.pop()
    lines = [part + b"\n" for part in parts]
    return [*lines, last] if last else lines


def _check(line: bytes, name: str, number: int) -> None:
    if len(line) > MAX_ROW_BYTES:
        problem = (
            f"Line {number:,} of {name} is longer than {MAX_ROW_BYTES:,} bytes. Split the row, or send it to "
            "a deployment."
        )
        raise Rejected(problem, {"input": problem})
