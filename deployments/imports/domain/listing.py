"""The listing of a source: its files and what the source says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source. `path` is relative to the artifact; `locator` is where the source has it.

    `version_id` and `etag` identify the listed bytes, `sha256` is the source's promise; each is empty
    if the source does not offer it.
    """

    path: str
    size_bytes: int
    locator: str
    version_id: str = ""
    etag: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a source and what it says about them. `pin` is what a movable address named: a commit, or
    the version of an alias. `facts` are kept with the import.
    """

    files: Sequence[SourceFile]
    pin: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    readme: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
