"""The bytes of objects and parts as files, read in pieces, so that no size needs memory.

A body is a list of pieces of files. A whole object that was uploaded in parts stays the list of its
parts: nothing is copied when they are joined. Whoever keeps a body holds its files by hard links of
their own, so a copy takes no space and outlives what it was copied from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """`length` bytes of the file `name` from byte `start`."""

    name: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes in files of `folder`: has a length, can be sliced, and is read by iterating."""

    folder: Path
    pieces: tuple[Piece, ...]

    def __len__(self) -> int:
        return sum(piece.length for piece in self.pieces)

    def __getitem__(self, part: slice) -> Body:
        start, stop, _ = part.indices(len(self))
        pieces, at = [], 0
        for piece in self.pieces:
            first, last = max(start - at, 0), min(stop - at, piece.length)
            if first < last:
                pieces.append(Piece(piece.name, piece.start + first, last - first))
            at += piece.length
        return replace(self, pieces=tuple(pieces))

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes in chunks of at most 1 MiB. Raises OSError if the object was deleted meanwhile, EOFError
        if a piece is shorter than recorded.
        """
        for piece in self.pieces:
            with (self.folder / piece.name).open("rb", buffering=0) as file:
                file.seek(piece.start)
                left = piece.length
                while left:
                    chunk = file.read(min(left, _CHUNK_BYTES))
                    if not chunk:
                        raise EOFError(f"{piece.name} is shorter than recorded")
                    left -= len(chunk)
                    yield chunk


class Bodies:
    """The files of all bodies, in one folder.

    Files that a thread's request gives up are removed by that thread's `sweep`, after what named them
    was written without them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._given_up = threading.local()
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, content: bytes) -> Body:
        if not content:
            return Body(self.folder, ())
        name = uuid4().hex
        (self.folder / name).write_bytes(content)
        return Body(self.folder, (Piece(name, 0, len(content)),))

    def hold(self, body: Body) -> Body:
        """Return the same bytes under new names, which are the caller's own."""
        return Body(self.folder, tuple(self._linked(piece) for piece in body.pieces))

    def _linked(self, piece: Piece) -> Piece:
        name = uuid4().hex
        os.link(self.folder / piece.name, self.folder / name)
        return replace(piece, name=name)

    def give_up(self, body: Body) -> None:
        names = self._given_up.__dict__.setdefault("names", [])
        names += [piece.name for piece in body.pieces]

    def sweep(self) -> None:
        for name in self._given_up.__dict__.pop("names", []):
            (self.folder / name).unlink(missing_ok=True)

    def keep_only(self, bodies: Iterable[Body]) -> None:
        """Remove what a server left that ended: parts of open uploads, bodies that nothing names."""
        names = {piece.name for body in bodies for piece in body.pieces}
        for path in self.folder.iterdir():
            if path.name not in names:
                path.unlink()


def md5_of(chunks: Iterable[bytes]) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def checksum_of(chunks: Iterable[bytes], algorithm: str) -> bytes | None:
    """Return S3's checksum of the bytes, binary. None for an algorithm that is not available here."""
    if algorithm == "CRC32":
        value = 0
        for chunk in chunks:
            value = binascii.crc32(chunk, value)
        return value.to_bytes(4, "big")
    if algorithm not in ("SHA1", "SHA256"):
        return None
    digest = hashlib.new(algorithm.lower(), usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def base64_of(checksum: bytes) -> str:
    return base64.b64encode(checksum).decode()
