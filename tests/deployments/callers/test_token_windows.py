"""Tokens against limits: what is above a minute's limit is made up for in the minutes after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deployments.callers.domain import token_windows
from deployments.callers.domain.token_windows import TokenLimits, TokenUse

_AT = datetime(2026, 5, 4, 20, 15, 42, tzinfo=UTC)
_MINUTE, _DAY = datetime(2026, 5, 4, 20, 15, tzinfo=UTC), datetime(2026, 5, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("limits", "tokens", "until"),
    [
        (TokenLimits(), 10**9, None),
        (TokenLimits(100), 99, None),
        (TokenLimits(100), 100, _MINUTE + timedelta(minutes=1)),
        (TokenLimits(100), 199, _MINUTE + timedelta(minutes=1)),
        (TokenLimits(100), 520, _MINUTE + timedelta(minutes=5)),
        (TokenLimits(None, 500), 499, None),
        (TokenLimits(None, 500), 9000, _DAY + timedelta(days=1)),
        (TokenLimits(100, 500), 600, _DAY + timedelta(days=1)),
    ],
)
def test_a_key_is_paused_until_its_use_is_below_its_limits_again(
    limits: TokenLimits, tokens: int, until: datetime | None
) -> None:
    use = token_windows.add(token_windows.nothing(_AT), limits, tokens, _AT)

    assert token_windows.paused_until(use, limits) == until
    if until is not None:
        later = token_windows.at_time(use, limits, until)
        assert token_windows.paused_until(later, limits) is None


def test_a_minute_gives_back_its_limit_and_a_day_everything() -> None:
    limits = TokenLimits(100, 1000)
    use = token_windows.add(token_windows.nothing(_AT), limits, 350, _AT)

    after_two = token_windows.at_time(use, limits, _AT + timedelta(minutes=2))
    tomorrow = token_windows.at_time(use, limits, _AT + timedelta(days=1))

    assert after_two == TokenUse(_MINUTE + timedelta(minutes=2), 150, _DAY, 350)
    assert (tomorrow.minute_tokens, tomorrow.day_tokens) == (0, 0)


def test_without_a_limit_no_minute_leaves_anything_to_the_next() -> None:
    use = token_windows.add(token_windows.nothing(_AT), TokenLimits(), 10**6, _AT)

    assert token_windows.at_time(use, TokenLimits(), _AT + timedelta(minutes=1)).minute_tokens == 0


def test_an_earlier_reading_counts_in_the_window_that_has_begun() -> None:
    limits = TokenLimits(100)
    use = token_windows.add(token_windows.nothing(_AT), limits, 10, _AT)

    again = token_windows.add(use, limits, 5, _AT - timedelta(minutes=3))

    assert again == TokenUse(_MINUTE, 15, _DAY, 15)
