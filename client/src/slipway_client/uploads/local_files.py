"""The files of an upload on this machine, and their digests."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slipway_client.errors import InvalidInput

CHUNK_BYTES: Final = 1 << 20
# What version control, Python and file managers leave in folders.
SKIPPED: Final = frozenset(
    {
        *(".git", "__pycache__", ".ipynb_checkpoints", "__MACOSX"),
        *(".DS_Store", "Thumbs.db", "desktop.ini"),
    }
)
# Beside each file that macOS writes to a disk of another system.
_APPLE_DOUBLE: Final = "._"

OnBytes = Callable[[int], None]


class FileChanged(InvalidInput):
    """A file was written to while it was uploaded."""

    def __init__(self, source: Path) -> None:
        super().__init__(f"{source} has changed during the upload. Push again once it is written.")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to upload. `path` is what the version calls it. Size and time of change tell whether it is still the
    same file.
    """

    path: str
    source: Path
    size_bytes: int
    changed_ns: int

    def chunks(self, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a range. Raises FileChanged if the file is not as it was listed."""
        left = self.size_bytes - start if size is None else size
        with self.source.open("rb") as file:
            self._require_unchanged(file.fileno())
            file.seek(start)
            while left:
                chunk = file.read(min(CHUNK_BYTES, left))
                if not chunk:
                    raise FileChanged(self.source)
                left -= len(chunk)
                yield chunk
            self._require_unchanged(file.fileno())

    def _require_unchanged(self, descriptor: int) -> None:
        now = os.fstat(descriptor)
        if (now.st_size, now.st_mtime_ns) != (self.size_bytes, self.changed_ns):
            raise FileChanged(self.source)

    def head(self, size: int) -> str:
        """Return the first bytes in base64."""
        first = next(self.chunks(0, min(size, self.size_bytes)), b"")
        return base64.b64encode(first).decode()


def collect(path: Path) -> list[LocalFile]:
    """Collect one file, or all files of a folder by their path in it.

    Links to files are followed, because caches of models consist of them; links to folders are not. Raises
    InvalidInput.
    """
    try:
        if path.is_dir():
            files = [_local(file, file.relative_to(path).as_posix()) for file in _walk(path)]
        else:
            files = [_local(path, path.name)]
    except OSError as error:
        raise InvalidInput(f"{error.filename} cannot be read: {error.strerror}.") from error
    if not files:
        raise InvalidInput(f"{path} has no files.")
    return sorted(files, key=lambda file: file.path.encode())


def _walk(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in SKIPPED or entry.name.startswith(_APPLE_DOUBLE):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry)
        elif entry.is_dir():
            raise InvalidInput(f"{entry} is a link to a folder. Copy the folder, or leave it out.")
        else:
            yield entry


def _local(source: Path, path: str) -> LocalFile:
    if not source.is_file():
        source.stat()
        raise InvalidInput(f"{source} is not a regular file.")
    stat = source.stat()
    return LocalFile(path, source, stat.st_size, stat.st_mtime_ns)


def sha256(
    file: LocalFile, on_bytes: OnBytes, start: int = 0, size: int | None = None
) -> hashlib._Hash:
    """Return the SHA-256 of the file, or of a range of it, read as a stream."""
    digest = hashlib.sha256()
    for chunk in file.chunks(start, size):
        digest.update(chunk)
        on_bytes(len(chunk))
    return digest


def identity(sha256_by_path: Mapping[str, str]) -> str:
    """Return the digest of a version: for one file its own; for several that of what `sha256sum` prints for them,
    by path.
    """
    if len(sha256_by_path) == 1:
        return next(iter(sha256_by_path.values()))
    by_bytes = sorted(sha256_by_path.items(), key=lambda item: item[0].encode())
    lines = "".join(f"{digest}  {path}\n" for path, digest in by_bytes)
    return hashlib.sha256(lines.encode()).hexdigest()
