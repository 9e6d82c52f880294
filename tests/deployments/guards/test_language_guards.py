"""Guards of language models: first token, later tokens, tokens per second of a request, clients that leave."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.guards.domain import counter_verdicts, limits, sequential_tests, synthetic_requests
from deployments.guards.domain.betting.blocks import CALM, BlockLengths
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.counters import NO_FACTS, SideFacts, Sums
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests

COUNTED = SideFacts(aborts_counted=1.0)
# 20 answers of 101 tokens: the first after 300 ms, the others 20 ms apart.
READING = Sums(
    success=20,
    duration_us=46_000_000,
    aborted=1,
    tokens=2020,
    first_tokens=20,
    first_token_us=6_000_000,
    later_tokens=2000,
    later_token_us=40_000_000,
)


def judged(
    metric: str,
    candidate: Sums,
    *,
    readings: int = 30,
    stable: Sums = READING,
    facts: tuple[SideFacts, SideFacts] = (COUNTED, COUNTED),
) -> GuardResult:
    limit = GuardLimit(metric=metric, max_ratio=1.25)
    procedure = Procedure((limit,), stable=facts[0], candidate=facts[1])
    tests = StepTests(lengths=BlockLengths(CALM, CALM, is_from_history=True))
    for _ in range(readings):
        tests = sequential_tests.advance(tests, Side(stable, candidate), procedure=procedure)
    by = CounterInputs(
        tests=tests,
        alpha=0.002,
        is_strict=False,
        min_requests=100,
        stable=facts[0],
        candidate=facts[1],
    )
    return counter_verdicts.judge((limit,), by)[0]


@pytest.mark.parametrize(
    ("metric", "slower", "stable", "candidate"),
    [
        ("time_to_first_token", {"first_token_us": 12_000_000}, "300 ms", "600 ms"),
        ("inter_token_latency", {"later_token_us": 60_000_000}, "20.0 ms", "30.0 ms"),
        ("tokens_per_second", {"later_token_us": 60_000_000}, "43.9/s", "30.6/s"),
    ],
)
def test_a_slower_candidate_fails_by_the_figure_that_is_slower(
    metric: str, slower: dict[str, int], stable: str, candidate: str
) -> None:
    passed, failed = judged(metric, READING), judged(metric, replace(READING, **slower))

    assert (passed.verdict, passed.stable, passed.candidate) == (Verdict.PASSED, stable, stable)
    assert (failed.verdict, failed.candidate) == (Verdict.FAILED, candidate)
    assert failed.message.startswith("worse than allowed: +")


def test_answers_of_twice_the_length_are_no_slower() -> None:
    """Their mean latency is twice as high: the guard that a language model does not have by default."""
    longer = replace(
        READING,
        duration_us=86_000_000,
        tokens=4020,
        later_tokens=4000,
        later_token_us=80_000_000,
    )

    assert judged("latency_mean", longer).verdict == Verdict.FAILED
    for limit in limits.DEFAULTS_OF_TOKENS:
        if limit.metric != "lost_requests":
            assert judged(limit.metric, longer).verdict == Verdict.PASSED, limit.metric


def test_clients_that_leave_the_candidate_more_often_abort_it() -> None:
    impatient = replace(READING, success=14, aborted=7)

    failed = judged("aborted_requests", impatient)

    assert (failed.verdict, failed.stable, failed.candidate) == (Verdict.FAILED, "4.76%", "33.33%")
    assert failed.message == (
        "worse than allowed: 210 of 630 requests were aborted, 7.0 times as often as stable"
    )
    assert judged("aborted_requests", READING).verdict == Verdict.PASSED
    assert judged("error_rate", impatient).verdict == Verdict.PASSED, "they are no errors"


@pytest.mark.parametrize("facts", [(COUNTED, NO_FACTS), (NO_FACTS, COUNTED)])
def test_a_server_that_counts_no_aborts_is_not_compared_with_one_that_does(
    facts: tuple[SideFacts, SideFacts],
) -> None:
    """SGLang shows none of them, which is not zero."""
    impatient = replace(READING, success=14, aborted=7)

    result = judged("aborted_requests", impatient, facts=facts)

    assert (result.verdict, result.message) == (
        Verdict.NOT_KNOWN,
        "one of the servers does not count aborted requests",
    )


@pytest.mark.parametrize(
    "metric", ["time_to_first_token", "inter_token_latency", "tokens_per_second"]
)
def test_a_server_without_tokens_is_said_to_be_none_of_a_language_model(metric: str) -> None:
    plain = Sums(success=20, duration_us=46_000_000)

    result = judged(metric, plain, stable=plain)

    assert (result.verdict, result.message) == (
        Verdict.NOT_KNOWN,
        "its server counts no tokens: this guard is one of language models",
    )


def test_the_portals_own_requests_are_taken_off_tokens_too() -> None:
    busy = Sums(**{name: value * 10 for name, value in READING.to_json().items()})

    few, owed = synthetic_requests.without(busy, 2)
    none, _ = synthetic_requests.without(READING, 10)

    assert (few.success, few.first_tokens, few.later_token_us, owed) == (198, 198, 396_000_000, 0)
    assert (none.untimed, none.first_tokens, none.tokens, none.aborted) == (10, 0, 0, 1)


def test_zeros_are_not_stored() -> None:
    assert Sums(success=3).to_json() == {"success": 3}
    assert Sums(**READING.to_json()) == READING
