"""Tokens that a key used against its limits, and until when it is paused: pure.

Minutes and days are those of the clock (UTC). What a minute used above its limit counts in the minutes after it,
so that the limit holds on average although use is known only after the answers: a key that used five times its
limit is paused for five minutes. A day's limit starts anew at midnight.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The token limits of a key. None means no limit."""

    per_minute: int | None = None
    per_day: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.per_minute is not None or self.per_day is not None


@dataclass(frozen=True, slots=True)
class TokenUse:
    """The tokens that a key used. `minute` and `day` are when these began; `minute_tokens` includes what earlier
    minutes used too much.
    """

    minute: datetime
    minute_tokens: int
    day: datetime
    day_tokens: int


def minute_of(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def day_of(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def nothing(at: datetime) -> TokenUse:
    return TokenUse(minute_of(at), 0, day_of(at), 0)


def at_time(use: TokenUse, limits: TokenLimits, at: datetime) -> TokenUse:
    """Return the use in the minute and day of `at`. An earlier `at` leaves it unchanged, because readings may
    overtake each other.
    """
    minute, day = minute_of(at), day_of(at)
    minute_tokens, day_tokens = use.minute_tokens, use.day_tokens
    if minute > use.minute:
        # Without a limit nothing is too much.
        passed = (minute - use.minute) // _MINUTE
        minute_tokens = (
            max(0, minute_tokens - limits.per_minute * passed) if limits.per_minute else 0
        )
    if day > use.day:
        day_tokens = 0
    return TokenUse(max(minute, use.minute), minute_tokens, max(day, use.day), day_tokens)


def add(use: TokenUse, limits: TokenLimits, tokens: int, at: datetime) -> TokenUse:
    now = at_time(use, limits, at)
    return TokenUse(now.minute, now.minute_tokens + tokens, now.day, now.day_tokens + tokens)


def paused_until(use: TokenUse, limits: TokenLimits) -> datetime | None:
    """Return until when the key is paused. None while it is below its limits."""
    ends = []
    if limits.per_minute and use.minute_tokens >= limits.per_minute:
        ends.append(use.minute + use.minute_tokens // limits.per_minute * _MINUTE)
    if limits.per_day and use.day_tokens >= limits.per_day:
        ends.append(use.day + _DAY)
    return max(ends, default=None)
