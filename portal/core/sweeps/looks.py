"""The work check: one message looks up which sweeps of a queue have anything to do, so that the others need no
message.

An idle portal spends most of its processor time on messages. A check is no more than a query or two; a sweep that
has something to do is sent as beat would send it: under its own name, to its own queue, with its own time limit. So
one that fails or hangs takes no other along.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from portal.core import leases, wakeups
from portal.core.leases import Leased

logger = logging.getLogger(__name__)

Look = Callable[[], bool]
_looks: Final[dict[str, Look]] = {}


def register(task_name: str, look: Look) -> None:
    """Register a work check: `look` returns whether the sweep has something to do; it may err by saying so."""
    _looks[task_name] = look


def register_rows(task_name: str, model: type[Leased]) -> None:
    """Register a sweep that takes the due rows of `model`, and does nothing else."""
    register(task_name, lambda: leases.has_due(model))


def list_registered() -> Collection[str]:
    return _looks.keys()


def send_due(task_names: Collection[str], *, expires: float) -> list[str]:
    """Send the sweeps that have something to do, and those of which that cannot be said. Returns their names."""
    due = [name for name in task_names if _has_work(name)]
    for name in due:
        wakeups.send(name, expires=expires)
    return due


def _has_work(task_name: str) -> bool:
    try:
        return _looks[task_name]()
    except Exception:
        # Its sweep says what is wrong, under its own name.
        logger.exception("could not look for work of %s", task_name)
        return True
