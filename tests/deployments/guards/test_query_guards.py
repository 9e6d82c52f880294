"""PromQL guards: what is a query, what its answer says, and when a row of breaches is a failure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.guards.domain import promql
from deployments.guards.domain.evidence import Verdict
from deployments.guards.domain.promql import QueryGuard, QueryTarget, Watched
from deployments.plans.domain import rollout_plan
from deployments.plans.domain.rollout_plan import RolloutPlan
from fleet.clusters.domain.prometheus import (
    PrometheusSample,
    PrometheusUnreachable,
    QueryRefused,
    QueryResult,
)
from portal.core.definitions import Rejected

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TARGET = QueryTarget("vision", "detector", "detector", "detector-r2", "detector-r1", 61.9)
GUARD = QueryGuard(name="Checkout errors", query="sum(errors)", max=2.0, breaches=3)


def answer(*values: float, warnings: tuple[str, ...] = ()) -> QueryResult:
    return QueryResult("vector", tuple(PrometheusSample(value) for value in values), warnings)


def after(*values: float, guard: QueryGuard = GUARD) -> Watched:
    watched = Watched()
    for value in values:
        watched = promql.take(watched, guard, answer(value), query="q", at=AT)
    return watched


def verdict_of(*values: float) -> tuple[str, str]:
    result = promql.judge(GUARD, after(*values))
    return result.verdict, result.message


def test_placeholders_become_names_and_what_is_no_placeholder_stays() -> None:
    query = (
        'sum(rate(x{pod=~"$workload-.*", ns="$namespace"}[$window])) / '
        'sum(rate(x{pod=~"${stable_workload}-.*", d=~"^a$"}[$window])) '
        'and on() label_replace(y{m="$model"}, "a", "$1", "b", "(.*)")'
    )

    assert promql.fill(query, TARGET) == (
        'sum(rate(x{pod=~"detector-r2-.*", ns="vision"}[61s])) / '
        'sum(rate(x{pod=~"detector-r1-.*", d=~"^a$"}[61s])) '
        'and on() label_replace(y{m="detector"}, "a", "$1", "b", "(.*)")'
    )


@pytest.mark.parametrize(("seconds", "window"), [(0, "1s"), (59.9, "59s"), (1e6, "86400s")])
def test_window_is_the_step_so_far_and_a_day_at_most(seconds: float, window: str) -> None:
    target = QueryTarget("n", "d", "m", "w", "s", seconds)

    assert promql.fill("[$window]", target) == f"[{window}]"


@given(st.text(max_size=30))
@settings(max_examples=30)
def test_nothing_but_a_plain_name_ever_enters_a_query(value: str) -> None:
    target = QueryTarget(value, "d", "m", "w", "s", 1)
    try:
        filled = promql.fill('x{n="$namespace"}', target)
    except ValueError:
        return

    assert filled == f'x{{n="{value}"}}'
    assert not set(value) & set("\"\\{}\n'`$ ")


STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 100}]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "a" * 41}, "at most 40 characters"),
        ({"name": 7}, "name"),
        ({"query": " "}, "query of printable characters"),
        ({"query": "x" * 1001}, "at most 1000 characters"),
        ({"query": "x\x00"}, "query of printable characters"),
        ({"query": 'x{a="$team"}'}, "$team is not a placeholder. Use one of $namespace, "),
        ({"max": None}, "give a max, a min or both"),
        ({"max": float("nan")}, "max"),
        ({"max": True}, "max"),
        ({"max": 1, "min": 2}, "min is above max"),
        ({"breaches": 0}, "breaches"),
        ({"breaches": 1.5}, "breaches"),
        ({"max_ratio": 2}, "max_ratio"),
    ],
)
def test_a_guard_that_cannot_be_queried_is_refused(changed: dict[str, Any], message: str) -> None:
    row = {"metric": "promql", "name": "Errors", "query": "sum(x)", "max": 1.0}

    with pytest.raises(Rejected) as refusal:
        rollout_plan.check({"guards": [{**row, **changed}]}, STEPS)

    assert message in str(refusal.value.fields)


def test_each_query_of_a_plan_has_a_name_of_its_own() -> None:
    def named(*names: str) -> list[dict[str, Any]]:
        return [{"metric": "promql", "name": name, "query": "x", "max": 1} for name in names]

    def check(*names: str) -> RolloutPlan:
        return rollout_plan.check({"guards": named(*names)}, STEPS)

    assert [guard.name for guard in check("a", "b").guards.queries] == ["a", "b"]
    for names in (("a", "A"), ("Error ratio",), ("Traffic split",), ("Latency P95",)):
        with pytest.raises(Rejected, match="is taken"):
            check(*names)
    with pytest.raises(Rejected, match="At most 6 promql guards"):
        check(*"abcdefg")


def test_a_plan_with_all_kinds_of_guards_is_stored_and_read_as_it_was() -> None:
    plan = rollout_plan.check(
        {
            "guards": [
                {"metric": "promql", "name": "A", "query": "x", "min": 1, "breaches": 2},
                {"metric": "latency_p99", "max": 40},
                {"metric": "error_rate", "max_ratio": 2},
            ]
        },
        STEPS,
    )

    assert rollout_plan.read_stored(plan.to_json(), STEPS) == plan
    assert plan.guards.queries == (QueryGuard(name="A", query="x", min=1.0, breaches=2),)
    assert plan.guards.tests == 2, "a query has no test that could spend alpha"
    assert rollout_plan.read_stored({}, []).guards.queries == ()


def test_a_failure_takes_so_many_breaches_in_a_row_and_stays() -> None:
    assert verdict_of(3, 3) == ("not enough data", "outside ≤ 2: 2 of 3 breaches in a row")
    assert verdict_of(3, 3, 1, 3, 3) == ("not enough data", "outside ≤ 2: 2 of 3 breaches in a row")
    assert verdict_of(3, 3, 3) == (
        "fail",
        "outside ≤ 2 in 3 readings in a row or more; it is 3 now",
    )
    assert verdict_of(3, 3, 3, 1, 1, 1)[0] == "fail"


def test_a_pass_takes_as_many_readings_within_the_limit() -> None:
    assert verdict_of(2, 2) == (
        "not enough data",
        "within the limit in 2 of 3 readings in a row so far",
    )
    assert verdict_of(3, 2, 2, 2) == ("pass", "within the limit in the last 3 readings")


def test_at_least_and_between_are_limits_too() -> None:
    between = QueryGuard(name="x", query="q", max=2.0, min=1.0)

    assert [between.is_breach(value) for value in (0.9, 1, 2, 2.1)] == [True, False, False, True]
    assert between.limit_text == "≥ 1 and ≤ 2"
    assert QueryGuard(name="x", query="q", min=-5.0).is_breach(-5.1)


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (answer(), "Prometheus has no series for the query"),
        (answer(1, 2), "the query gives 2 series, not one number"),
        (answer(float("nan")), "the value is nan: mostly a division by 0 requests"),
        (answer(float("inf")), "the value is inf: mostly a division by 0 requests"),
        (answer(1, warnings=("a store is away",)), "data may be missing: a store is away"),
        (PrometheusUnreachable("it does not answer"), "it does not answer"),
        (QueryRefused("parse error"), "parse error"),
    ],
)
def test_what_is_no_number_neither_passes_nor_fails_and_ends_the_row(
    reading: Any, message: str
) -> None:
    for values in ((3, 3), (1, 1, 1), (3, 3, 3)):
        watched = promql.take(after(*values), GUARD, reading, query="q", at=AT)
        line = promql.judge(GUARD, watched)

        assert line.verdict == Verdict.NOT_ENOUGH
        assert message in line.message
        assert line.candidate == ""
        assert (watched.breaches, watched.good) == (0, 0)


def test_the_line_shows_query_value_time_and_the_lack_of_a_test() -> None:
    line = promql.judge(GUARD, after(1.23456789))

    assert (line.query, line.candidate, line.measured_at) == ("q", "1.23457", "03:04:05 UTC")
    assert line.limit == "≤ 2"
    assert line.n is None
    assert line.statistic == (
        "fails after 3 consecutive breaches; a query's value is not a counter, so there is no sequential test and no "
        "bound on false alarms"
    )


@given(st.lists(st.sampled_from([1.0, 3.0, float("nan")]), max_size=12))
@settings(max_examples=30)
def test_stored_state_goes_on_exactly_and_fails_only_after_a_whole_row(values: list[float]) -> None:
    watched = Watched()
    for value in values:
        watched = promql.watched_from_json(watched.to_json() if watched.at else None)
        watched = promql.take(watched, GUARD, answer(value), query="q", at=AT)
    text = "".join("x" if value == 3 else "." for value in values)

    assert watched.has_failed == ("xxx" in text)
    if promql.judge(GUARD, watched).verdict == Verdict.PASSED:
        assert values[-3:] == [1.0, 1.0, 1.0]
