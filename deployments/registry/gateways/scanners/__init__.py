"""The scanners of uploaded files. Each runs in the sandbox only: task.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Final, Protocol

from deployments.registry.domain.artifacts.reading import Artifact, open_file
from deployments.registry.domain.scanning import rules
from deployments.registry.domain.scanning.findings import Findings


@dataclass(frozen=True, slots=True)
class ScanTarget:
    """A file of an artifact. `name` is the uploader's, which may lie; `is_pickle`: the format of the version
    is a pickle. `path` is a copy on disk; without one it is read in ranges.
    """

    name: str
    is_pickle: bool
    artifact: Artifact
    path: Path | None = None

    @property
    def size(self) -> int:
        return self.artifact.sizes[self.name]

    def open(self) -> IO[bytes]:
        return self.path.open("rb") if self.path else open_file(self.artifact, self.name)


class Scanner(Protocol):
    """A scanner of files. `version` is empty where the scanner is not installed."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def applies_to(self, target: ScanTarget) -> bool: ...

    def scan(self, target: ScanTarget) -> Findings:
        """Scan a file. An exception means that the file could not be scanned."""


PICKLESCAN: Final = "picklescan"
MODELSCAN: Final = "modelscan"


def installed_version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def engines() -> Mapping[str, str]:
    """Return the version of each scanner by name, without importing it."""
    return {
        MODELSCAN: installed_version(MODELSCAN),
        PICKLESCAN: installed_version(PICKLESCAN),
        rules.NAME: rules.VERSION,
    }
