"""Metrics or requests that stop: the verdicts on the page are based on old numbers.

Neither promotes and neither aborts. People are notified that the page is out of date.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

# Fewer requests do not show the typical pause between two requests.
_ENOUGH: Final = 20
# A gap of so many typical pauses happens once in a billion times, if requests arrive at random.
_PAUSES: Final = 20
_LEAST: Final = timedelta(minutes=2)


def describe_no_requests(
    *, requests: int, since: datetime, busy_at: datetime | None, now: datetime
) -> str:
    """Describe that requests stopped. Empty while more may be expected. `requests` reached both revisions from
    `since` to `busy_at`.

    The server answers and counts nothing: nobody calls, or the gateway passes nothing on.
    """
    if busy_at is None or requests < _ENOUGH:
        return ""
    typical_pause = (busy_at - since) / requests
    if now - busy_at < max(_LEAST, typical_pause * _PAUSES):
        return ""
    return (
        f"no requests reach either revision since {busy_at:%H:%M:%S} UTC, {requests:,} came before"
    )
