"""The words of a chart: what a mark says, and why nothing was read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deployments.serving.domain.chart_events import (
    DeploymentHistory,
    StateChange,
    describe_event,
)
from deployments.serving.domain.chart_ranges import CHART_RANGES, find_range

AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minute: int) -> datetime:
    return AT + minute * MINUTE


@pytest.mark.parametrize(
    ("kind", "message", "text"),
    [
        ("rollout started", "r2 replaces r1", "r2 rollout began"),
        ("rollout running", "the candidate is ready; it gets 10%", "r2 gets 10%"),
        ("rollout running", "promoted from 10% to 50%: looks good", "r2 promoted from 10% to 50%"),
        ("rollout running", "unpaused", "r2 rollout resumed"),
        ("rollout paused", "paused: p95 looks odd", "r2 rollout paused"),
        ("rollout promoting", "promoted to all requests", "r2 gets all requests"),
        ("rollout aborting", "aborted: too slow", "r2 rollout aborted"),
        ("rollout completed", "the old revision is removed", "r2 rollout completed"),
        ("rollout alias", "detector@prod now points to detector:2", ""),
        ("state", "degraded: 1 of 2 pods is ready", "degraded"),
        ("state", "stopped", "stopped"),
        ("state", "progressing: loading the model", ""),
        ("unreachable", "The cluster did not answer", "cluster not reachable"),
        ("failed", "detector-r2: CrashLoopBackOff", "r2 failed"),
        ("download", "detector-r2: downloads its model", ""),
        ("caller key", "key created", ""),
    ],
)
def test_marks_are_few_words(kind: str, message: str, text: str) -> None:
    assert describe_event(kind, message, None if kind in ("state", "unreachable") else 2) == text


def test_absence_is_explained_by_the_state_of_its_time() -> None:
    history = DeploymentHistory(
        created_at=at(5),
        first_ready_at=at(10),
        states=[
            StateChange(at(6), "progressing"),
            StateChange(at(10), "ready"),
            StateChange(at(20), "stopped"),
            StateChange(at(30), "progressing"),
            StateChange(at(32), "ready"),
            StateChange(at(50), "retired"),
        ],
    )

    assert [
        history.describe_absence(at(minute), ()) for minute in (4, 5, 7, 15, 25, 31, 40, 55)
    ] == [
        "not deployed yet",
        "not ready",
        "not ready",
        "no readings",
        "stopped",
        "not ready",
        "no readings",
        "retired",
    ]


def test_an_unreachable_cluster_explains_the_gap_that_it_was_found_in() -> None:
    history = DeploymentHistory(
        created_at=at(-60),
        first_ready_at=at(-50),
        states=[StateChange(at(-50), "ready")],
        unreachable_at=[at(12)],
    )
    read_at = [at(minute) for minute in (*range(10), *range(15, 20), *range(25, 30))]

    unread = [minute for minute in range(30) if at(minute) not in read_at]
    reasons = {minute: history.describe_absence(at(minute), read_at) for minute in unread}

    assert {minute for minute, text in reasons.items() if "reachable" in text} == set(range(10, 15))
    assert reasons[22] == "no readings"


def test_a_cluster_that_is_unreachable_now_explains_all_since_its_last_answer() -> None:
    history = DeploymentHistory(
        created_at=at(-60),
        first_ready_at=at(-50),
        states=[StateChange(at(-50), "ready")],
        unreachable_since=at(20),
    )

    assert history.describe_absence(at(19), [at(18)]) == "no readings"
    assert history.describe_absence(at(20), [at(18)]) == "cluster not reachable"


def test_no_range_has_more_than_some_300_points() -> None:
    assert [round(one.span / one.step) for one in CHART_RANGES] == [60, 180, 288, 168]
    assert [one.description for one in CHART_RANGES] == [
        "last hour, per minute",
        "last 6 hours, per 2 minutes",
        "last 24 hours, per 5 minutes",
        "last 7 days, per hour",
    ]
    assert find_range("24h").text == "24 h"
    assert find_range("a year").name == find_range("").name == "1h"
