"""The portal's synthetic requests are subtracted from a server's counters."""

from __future__ import annotations

import pytest

from deployments.guards.domain import synthetic_requests
from deployments.guards.domain.counters import Sums

BUSY = Sums(
    success=1000,
    failure=7,
    inferences=2000,
    duration_us=4_000_000,
    queue_us=1_000_000,
    busy_ms=900,
    observed_ms=5000,
)


def test_a_few_among_many_leave_the_times_of_users_as_they_are() -> None:
    rest, owed = synthetic_requests.without(BUSY, 10)

    assert (rest.success, rest.failure, owed) == (990, 7, 0)
    assert rest.duration_us / rest.timed == pytest.approx(4000)
    assert rest.busy_ms / rest.inferences == pytest.approx(0.45)
    assert rest.observed_ms == 5000


def test_many_among_few_leave_counts_but_no_times() -> None:
    rest, owed = synthetic_requests.without(Sums(success=12, failure=1, duration_us=90_000), 10)

    assert rest == Sums(success=2, failure=1, untimed=2)
    assert (rest.timed, owed) == (0, 0)


def test_what_was_not_read_yet_is_taken_off_later_and_failures_never() -> None:
    rest, owed = synthetic_requests.without(Sums(success=3, failure=4), 5)
    assert (rest.success, rest.failure, owed) == (0, 4, 2)

    later, owed = synthetic_requests.without(Sums(success=6), owed)
    assert (later.success, owed) == (4, 0)


def test_without_synthetic_requests_nothing_changes() -> None:
    assert synthetic_requests.without(BUSY, 0) == (BUSY, 0)
