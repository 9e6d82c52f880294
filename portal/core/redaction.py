"""Redact the tokens of links and the codes of sign-ins in logs, which many people can read."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

_SECRET: Final = re.compile(
    r"(/decide/|/invitation/|/password-link/|/sign-in/with/[\w%-]+/callback\?)[^\s\"']+"
)
_MARKS: Final = ("/decide/", "/invitation/", "/password-link/", "/callback?")


def redact(text: str) -> str:
    return _SECRET.sub(r"\1[redacted]", text)


def install() -> None:
    """Redact in every logger of this process, including those of the web server and of error trackers: a
    filter or formatter would apply to its own handler only.
    """
    make = logging.getLogRecordFactory()
    if getattr(make, "is_redacting", False):
        return

    def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        try:
            text = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # The handler reports the malformed record.
            return record
        if any(mark in text for mark in _MARKS):
            record.msg, record.args = redact(text), None
        return record

    make_redacted.is_redacting = True  # type: ignore[attr-defined]  # marks it as ours
    logging.setLogRecordFactory(make_redacted)
