"""The reasons for which an import cannot go on. Messages are for people and contain no credentials."""

from __future__ import annotations


class SourceError(Exception):
    """The base of all."""


class SourceRefused(SourceError):
    """An error that trying again does not help: the import fails and can be resumed by a person. `status` is
    what an HTTP server answered with; 0 for other reasons.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class SourceChanged(SourceRefused):
    """The source has other bytes than were listed."""


class SourceUnavailable(SourceError):
    """A transient fault: the import retries, `retry_after` seconds from now or later."""

    def __init__(self, message: str, *, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
