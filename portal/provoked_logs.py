"""Shortens log lines that anybody can provoke, such as a wrong host, to a few warnings a minute.

Django logs each of these as an error with its traceback, so that a scanner fills the logs and sets off alerts on errors.
"""

from __future__ import annotations

import logging
from typing import Final

LOGGERS: Final = tuple(
    f"django.security.{name}"
    for name in (
        "DisallowedHost",
        "DisallowedRedirect",
        "InvalidSessionKey",
        "RequestDataTooBig",
        "SuspiciousFileOperation",
        "SuspiciousMultipartForm",
        "SuspiciousOperation",
        "SuspiciousSession",
        "TooManyFieldsSent",
        "TooManyFilesSent",
    )
)
LINES_A_MINUTE: Final = 5
LONGEST_LINE: Final = 200
_MINUTE: Final = 60.0


class Provoked(logging.Filter):
    """Limits one logger. The first line of a minute says how many were left out of the last one that had any."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = -1
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        left_out = self._count_one(int(record.created // _MINUTE))
        if self._count > LINES_A_MINUTE:
            return False
        text = record.getMessage()
        if len(text) > LONGEST_LINE:
            text = f"{text[: LONGEST_LINE - 1]}…"
        record.msg = f"{text} ({left_out} more were not logged)" if left_out else text
        record.args = record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True

    def _count_one(self, minute: int) -> int:
        """How many the last minute left out, when this is the first of another."""
        if minute == self._minute:
            self._count += 1
            return 0
        left_out = max(self._count - LINES_A_MINUTE, 0)
        self._minute, self._count = minute, 1
        return left_out


class WithoutTraceback(logging.Filter):
    """A refusal names its reason; where in Django's code it arose helps nobody. Errors of ours keep theirs."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            record.exc_info = record.exc_text = None
        return True
