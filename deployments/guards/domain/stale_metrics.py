"""Numbers that stop, and requests that stop: both leave verdicts standing on what came before.

Neither promotes and neither aborts. People are told, because what they look at is old.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

# Fewer tell no usual pause between two of them.
_ENOUGH: Final = 20
# So many usual pauses in a row happen by chance once in a billion times, if requests come at random.
_PAUSES: Final = 20
_LEAST: Final = timedelta(minutes=2)


def quiet_words(*, requests: int, since: datetime, busy_at: datetime | None, now: datetime) -> str:
    """`requests` came from `since` to `busy_at` to both revisions; empty while more may be expected.

    The server answers and counts nothing: nobody calls, or the gateway passes nothing on.
    """
    if busy_at is None or requests < _ENOUGH:
        return ""
    usual = (busy_at - since) / requests
    if now - busy_at < max(_LEAST, usual * _PAUSES):
        return ""
    return (
        f"no requests reach either revision since {busy_at:%H:%M:%S} UTC, {requests:,} came before"
    )
