"""A stop of requests raises a notification; the normal pauses of an idle model do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deployments.guards.domain import stale_metrics

SINCE = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
BUSY = SINCE + timedelta(minutes=10)


def _describe(requests: int, quiet_seconds: float, *, busy_at: datetime | None = BUSY) -> str:
    now = BUSY + timedelta(seconds=quiet_seconds)
    return stale_metrics.describe_no_requests(
        requests=requests, since=SINCE, busy_at=busy_at, now=now
    )


def test_a_busy_model_without_requests_is_reported_after_two_minutes() -> None:
    assert _describe(6000, 119) == ""
    assert _describe(6000, 120) == (
        "no requests reach either revision since 12:10:00 UTC, 6,000 came before"
    )


@pytest.mark.parametrize("quiet_seconds", [120, 399])
def test_an_idle_model_may_pause_for_twenty_of_its_typical_pauses(quiet_seconds: float) -> None:
    assert _describe(30, quiet_seconds) == ""
    assert _describe(30, 400) != ""


def test_too_few_requests_show_no_typical_pause() -> None:
    assert _describe(19, 7 * 24 * 3600) == ""
    assert _describe(0, 7 * 24 * 3600, busy_at=None) == ""
