"""Badges and status lines of the frame. Other apps register them at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from portal.accounts.models import User


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One line at the foot of the rail. `tone` is "ok", "bad" or ""."""

    text: str
    tone: str = ""


# A larger count is shown as "99+".
MOST_SHOWN: Final = 99

_badges: dict[str, Callable[[User], int]] = {}
_alert_counts: list[Callable[[User], int]] = []
_status_lines: list[Callable[[User], Sequence[StatusLine]]] = []


def register_badge(path: str, count: Callable[[User], int]) -> None:
    """Show count(user) beside the rail entry with this path while it is not zero."""
    _badges[path] = count


def register_alert_count(count: Callable[[User], int]) -> None:
    """Show count(user) at the bell of every page."""
    _alert_counts[:] = [count]


def register_status(lines: Callable[[User], Sequence[StatusLine]]) -> None:
    if lines not in _status_lines:
        _status_lines.append(lines)


def count_badge(path: str, user: User) -> int:
    count = _badges.get(path)
    return count(user) if count else 0


def alert_count(user: User) -> int:
    return sum(count(user) for count in _alert_counts)


def status_lines(user: User) -> list[StatusLine]:
    return [line for lines in _status_lines for line in lines(user)]
