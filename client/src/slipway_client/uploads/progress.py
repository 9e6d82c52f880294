"""The progress that an upload reports while it runs."""

from __future__ import annotations

from typing import Protocol

from slipway_client.types import Version


class Progress(Protocol):
    """Called from several threads."""

    def begin(self, stage: str, total_bytes: int) -> None:
        """`stage` is "digest" or "send"."""

    def advance(self, stage: str, count: int) -> None:
        """Negative when a part has to be sent again."""

    def note(self, line: str) -> None: ...

    def verifying(self, version: Version) -> None:
        """Each time that a check of the verification has changed."""


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
