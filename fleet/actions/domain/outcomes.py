"""The outcome of one pass over a running action."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleet.actions.domain.progress import Progress

SOON_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 10.0


class Result(StrEnum):
    GOES_ON = "goes on"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a pass. `progress` replaces what the row has, None keeps it; `after_seconds` is when to look
    again.
    """

    result: Result
    message: str
    progress: Progress | None = None
    after_seconds: float = SOON_SECONDS


def go_on(
    message: str, progress: Progress | None = None, *, after_seconds: float = SOON_SECONDS
) -> Outcome:
    return Outcome(Result.GOES_ON, message, progress, after_seconds)


def finish(message: str, progress: Progress | None = None) -> Outcome:
    return Outcome(Result.DONE, message, progress)


def fail(message: str, progress: Progress | None = None) -> Outcome:
    return Outcome(Result.FAILED, message, progress)
