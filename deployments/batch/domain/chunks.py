"""Cut files of rows into chunks of whole rows. Pure: no row is read twice, none is kept.

A row is a line of JSON, or a record of CSV, that is not blank. Rows are numbered from 1 through all files in the
order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    """A version of an object. `version_id` is empty if the bucket keeps none. `columns` are those of CSV
    (csv_rows), each [name, datatype, shape].
    """

    bucket: str
    key: str
    version_id: str
    etag: str
    size_bytes: int
    columns: Sequence[Sequence[Any]] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "bucket": self.bucket,
            "key": self.key,
            "version_id": self.version_id,
            "etag": self.etag,
            "size_bytes": self.size_bytes,
            **({"columns": [list(column) for column in self.columns]} if self.columns else {}),
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes [start, end) of a file, which contain `rows` rows from `first_row` on. In CSV they begin in
    `first_line`.
    """

    file: int
    start: int
    end: int
    rows: int
    first_row: int
    first_line: int = 0


def chunk_bytes(total_bytes: int, *, workers: int) -> int:
    """Return the approximate number of bytes of a chunk."""
    even = total_bytes // (workers * _CHUNKS_PER_WORKER)
    return max(_SMALLEST_BYTES, min(_LARGEST_BYTES, even))


def cut(
    records: Iterable[bytes], *, file: int, first_row: int, target_bytes: int, header: bytes = b""
) -> Iterator[Chunk]:
    """Cut one file into chunks; in CSV the records follow a `header`.

    Blank records belong to the chunk before them, or to the first one.
    """
    start = position = len(header)
    row, rows = first_row, 0
    # Of the byte after the last record, and of the chunk's first byte; 0 for JSON lines, which need none.
    line = first_line = 1 + header.count(b"\n") if header else 0
    for record in records:
        position += len(record)
        line += record.count(b"\n") if header else 0
        if record.strip():
            rows += 1
        if rows and (position - start >= target_bytes or rows >= _ROWS):
            yield Chunk(file, start, position, rows, row, first_line)
            row, start, rows, first_line = row + rows, position, 0, line
    if rows:
        yield Chunk(file, start, position, rows, row, first_line)


def lines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Split blocks into lines, with their line ends. Raises Rejected with the number of a line that is too large."""
    rest, number = b"", 0
    for block in blocks:
        parts = _split(rest + block)
        rest = b"" if not parts or parts[-1].endswith(b"\n") else parts.pop()
        for line in parts:
            number += 1
            check_size(line, name, number)
            yield line
        check_size(rest, name, number + 1)
    if rest:
        yield rest


def _split(text: bytes) -> list[bytes]:
    """Split at line feeds only: a carriage return ends no row."""
    parts = text.split(b"\n")
    last = parts.pop()
    lines = [part + b"\n" for part in parts]
    return [*lines, last] if last else lines


def check_size(line: bytes, name: str, number: int) -> None:
    if len(line) > MAX_ROW_BYTES:
        problem = (
            f"Line {number:,} of {name} is longer than {MAX_ROW_BYTES:,} bytes. Split the row, or send it to "
            "a deployment."
        )
        raise Rejected(problem, {"input": problem})
