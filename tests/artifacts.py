"""Artifacts without a store: in a folder and in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class LocalArtifact:
    """The files of a folder on this machine."""

    folder: Path

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.stat().st_size for path in files}

    def read(self, path: str, start: int, count: int) -> bytes:
        if path not in self.sizes:
            raise KeyError(path)
        with (self.folder / path).open("rb") as file:
            file.seek(start)
            return file.read(count)


@dataclass(frozen=True)
class MemoryArtifact:
    """Files in memory: their first bytes, with the sizes of the whole files."""

    contents: Mapping[str, bytes]
    sizes: Mapping[str, int]

    def read(self, path: str, start: int, count: int) -> bytes:
        if path not in self.sizes:
            raise KeyError(path)
        return self.contents.get(path, b"")[start : start + count]
