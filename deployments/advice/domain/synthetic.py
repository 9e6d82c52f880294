"""Requests of callers: those that were counted less those that the portal sent itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from fleet.gpus.domain.intervals import HOUR

_NEIGHBOURS: Final = (-HOUR, 0 * HOUR, HOUR)


def without(counted: Sequence[tuple[datetime, int]], sent: Mapping[datetime, int]) -> list[int]:
    """Return the requests of callers in each counted hour, in order of time.

    A request at the end of an hour may be counted in the next one, or the other way about, so synthetic requests
    that an hour cannot account for are subtracted from its neighbours.
    """
    left = dict(sent)
    made = []
    for start, requests in counted:
        of_callers = requests
        for near in (start + shift for shift in _NEIGHBOURS):
            taken = min(of_callers, left.get(near, 0))
            of_callers -= taken
            left[near] = left.get(near, 0) - taken
        made.append(of_callers)
    return made
