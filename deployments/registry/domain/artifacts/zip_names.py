"""The names of the members of a zip archive, and the kind of model that they make it.

Only its directory is read, within bounds, and nothing is unpacked: it runs outside the sandbox too.
Layout: PKWARE's APPNOTE, 4.3.12 (directory), 4.3.14 and 4.3.15 (Zip64), 4.3.16 (end).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts.reading import Artifact

MAGIC: Final = b"PK\x03\x04"
TORCH_SCRIPT: Final = "torchscript"
TORCH_EXPORT: Final = "pt2"
PYTORCH: Final = "pytorch"
KERAS: Final = "keras"
TORCHSERVE: Final = "torchserve"
NUMPY: Final = "numpy"
SKOPS: Final = "skops"
_MAX_DIRECTORY_BYTES: Final = 4 * 2**20
# The record of the end with the longest comment, and the locator of Zip64 before it.
_TAIL_BYTES: Final = 20 + 22 + 65_535
_END: Final = struct.Struct("<4sHHHHIIH")
_LOCATOR: Final = struct.Struct("<4sIQI")
_END_64: Final = struct.Struct("<4sQHHIIQQQQ")
_ENTRY: Final = struct.Struct("<4s6H3I5H2I")
# What skops.io.dump writes beside its schema.
_SKOPS_SCHEMA: Final = "schema.json"
_SKOPS_PARTS: Final = (".npy", ".npz", ".bin")
_IS_IN_ZIP64: Final = 0xFFFFFFFF
# Of a program that torch.export saved, and torch._inductor compiled (.pt2).
_EXPORTED: Final = frozenset({"archive_format", "serialized_exported_program.json"})


def read(artifact: Artifact, path: str) -> tuple[str, ...]:
    """Read the names in a ZIP archive. Empty for another file, for a damaged archive and where only the first
    bytes are at hand.
    """
    if artifact.read(path, 0, len(MAGIC)) != MAGIC:
        return ()
    size = artifact.sizes[path]
    start = max(0, size - _TAIL_BYTES)
    tail = artifact.read(path, start, size - start)
    at = _end_record(tail)
    if at < 0:
        return ()
    *_, length, offset, _ = _END.unpack_from(tail, at)
    if offset == _IS_IN_ZIP64 or length == _IS_IN_ZIP64:
        length, offset = _zip64(artifact, path, tail, at)
    if not 0 < length <= size or offset + length > size:
        return ()
    return tuple(_names(artifact.read(path, offset, min(length, _MAX_DIRECTORY_BYTES))))


def kind_of_model(names: Iterable[str]) -> str:
    """Return the kind of model that the archive with these names is. Empty for an archive of files."""
    names = [name for name in names if not name.endswith("/")]
    lasts = {PurePosixPath(name).name for name in names}
    if "MAR-INF/MANIFEST.json" in names:
        return TORCHSERVE
    if "model.weights.h5" in lasts:
        return KERAS
    if not lasts.isdisjoint(_EXPORTED):
        return TORCH_EXPORT
    if "constants.pkl" in lasts:
        return TORCH_SCRIPT
    return PYTORCH if "data.pkl" in lasts else _kind_of_arrays(names)


def _kind_of_arrays(names: list[str]) -> str:
    others = [name for name in names if name != _SKOPS_SCHEMA]
    if len(others) == len(names) - 1 and all(name.endswith(_SKOPS_PARTS) for name in others):
        return SKOPS
    is_arrays = bool(names) and all(name.endswith(".npy") and "/" not in name for name in names)
    return NUMPY if is_arrays else ""


def _end_record(tail: bytes) -> int:
    """Return the position of the end record, or -1. Its comment ends with the file, and may contain the magic
    number itself.
    """
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        rest = len(tail) - at - _END.size
        if rest >= 0 and _END.unpack_from(tail, at)[-1] == rest:
            break
        at = tail.rfind(b"PK\x05\x06", 0, at)
    return at


def _zip64(artifact: Artifact, path: str, tail: bytes, end: int) -> tuple[int, int]:
    """Return the length and offset of the directory of a large archive. Zeros if they are not stated."""
    if end < _LOCATOR.size:
        return 0, 0
    magic, _, at, _ = _LOCATOR.unpack_from(tail, end - _LOCATOR.size)
    record = artifact.read(path, at, _END_64.size) if magic == b"PK\x06\x07" else b""
    if len(record) != _END_64.size or not record.startswith(b"PK\x06\x06"):
        return 0, 0
    *_, length, offset = _END_64.unpack(record)
    return length, offset


def _names(directory: bytes) -> Iterator[str]:
    at = 0
    while at + _ENTRY.size <= len(directory):
        entry = _ENTRY.unpack_from(directory, at)
        if entry[0] != b"PK\x01\x02":
            return
        name, extra, comment = entry[10:13]
        start = at + _ENTRY.size
        yield directory[start : start + name].decode(errors="replace")
        at = start + name + extra + comment
