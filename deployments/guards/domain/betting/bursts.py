"""Whether failures came in bursts, by the minutes of some hours: one hour often has none of them.

A minute is a burst if more requests failed than five standard deviations, and three, above what the rate
of its hour makes expected. Of independent requests fewer than one minute in a million is one.
"""

from __future__ import annotations

import math
from typing import Final

from deployments.guards.domain.betting.slots import Series

# With fewer minutes bursts may only not have come yet.
LEAST_MINUTES: Final = 120
MOST_MINUTES: Final = 360
_HOUR: Final = 60
_DEVIATIONS: Final = 5.0
_SLACK: Final = 3.0


def has_none(minutes: Series) -> bool:
    """Whether none of the newest minutes is a burst, given minutes from the oldest. False also if too few are known."""
    known = [minute for minute in minutes if minute.requests]
    if len(known) < LEAST_MINUTES:
        return False
    newest_first = known[::-1][:MOST_MINUTES]
    hours = [newest_first[at : at + _HOUR] for at in range(0, len(newest_first), _HOUR)]
    return not any(_has_burst(hour) for hour in hours)


def _has_burst(hour: Series) -> bool:
    rate = sum(minute.failures for minute in hour) / sum(minute.requests for minute in hour)
    return any(minute.failures > most(rate * minute.requests) for minute in hour)


def most(expected: float) -> float:
    """Return the most failures of a minute that is no burst."""
    return expected + _DEVIATIONS * math.sqrt(expected) + _SLACK
