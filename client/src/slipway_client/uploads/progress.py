"""The progress that an upload reports while it runs."""

from __future__ import annotations

from typing import Protocol

from slipway_client.types import Version


class Progress(Protocol):
    """Called from several threads."""

    def begin(self, stage: str, total_bytes: int) -> None:
        """Begin `stage`, which is "digest" or "send", of `total_bytes`."""

    def advance(self, stage: str, count: int) -> None:
        """Advance a stage by `count` bytes, which is negative if a part has to be sent again."""

    def note(self, line: str) -> None: ...

    def verifying(self, version: Version) -> None:
        """Report each change of a check of the verification."""


class Silent:
    """No progress."""

    def begin(self, stage: str, total_bytes: int) -> None:
        return

    def advance(self, stage: str, count: int) -> None:
        return

    def note(self, line: str) -> None:
        return

    def verifying(self, version: Version) -> None:
        return
