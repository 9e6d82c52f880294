"""Verdicts and their messages: three verdicts, each with the numbers that led to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.guards.domain import catalogue, counter_verdicts, evidence, sequential_tests
from deployments.guards.domain import step_tests as stored_tests
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.counters import NO_FACTS, SideFacts, Sums
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.guard_set import PlanGuards
from deployments.guards.domain.kinds import gpu_memory
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests
from deployments.plans.domain import rollout_plan
from portal.core.definitions import Rejected

SERVER_LIMITS = PlanGuards().server_limits
CALM_STABLE = BlockLengths(errors=0.0, means=0.0, is_from_history=True)
FAIL, PASS, WAIT = Verdict.FAILED, Verdict.PASSED, Verdict.NOT_ENOUGH


def sums(requests: int, failure: int = 0, ms: float = 4.0) -> Sums:
    success = requests - failure
    return Sums(
        success=success,
        failure=failure,
        inferences=success,
        duration_us=round(success * ms * 1000),
        busy_ms=success,
        observed_ms=5000,
    )


def step_tests(
    stable: Sums,
    candidate: Sums,
    *,
    intervals: int = 1,
    limits: tuple[GuardLimit, ...] = SERVER_LIMITS,
    facts: SideFacts = NO_FACTS,
) -> StepTests:
    tests = StepTests(lengths=CALM_STABLE)
    for _ in range(intervals):
        stored = stored_tests.from_json(tests.to_json())
        assert stored == tests
        tests = sequential_tests.advance(
            stored,
            Side(stable, candidate),
            procedure=Procedure(limits=limits, stable=facts, candidate=facts),
        )
    return tests


def judge(
    tests: StepTests,
    *,
    limits: tuple[GuardLimit, ...] = SERVER_LIMITS,
    min_requests: int = 100,
    is_strict: bool = False,
    unknown: str = "",
    facts: SideFacts = NO_FACTS,
) -> list[GuardResult]:
    by = CounterInputs(
        tests=tests,
        alpha=0.01 / 8,
        is_strict=is_strict,
        min_requests=min_requests,
        stable=facts,
        candidate=facts,
        unknown=unknown,
    )
    return list(counter_verdicts.judge(limits, by))


@pytest.mark.parametrize(
    ("stable", "candidate", "intervals", "verdicts"),
    [
        (sums(900), sums(100), 1, [PASS, PASS]),
        (sums(900), sums(10), 1, [WAIT, WAIT]),
        (sums(900, 9), sums(100, 1), 20, [PASS, PASS]),
        (sums(900), sums(100, 3), 1, [WAIT, PASS]),
        (sums(900), sums(100, 3), 14, [FAIL, PASS]),
        (sums(900, ms=20), sums(100, ms=28), 1, [PASS, WAIT]),
        (sums(900, ms=20), sums(100, ms=28), 20, [PASS, FAIL]),
        # 25 % is allowed, and so is anything that is 2 ms slower at most.
        (sums(900, ms=20), sums(100, ms=24), 100, [PASS, PASS]),
        (sums(900, ms=1), sums(100, ms=2.9), 100, [PASS, PASS]),
        (sums(0), sums(100), 1, [WAIT, WAIT]),
        (sums(0), sums(0), 1, [WAIT, WAIT]),
    ],
)
def test_verdicts_on_errors_and_latency(
    stable: Sums, candidate: Sums, intervals: int, verdicts: list[Verdict]
) -> None:
    results = judge(step_tests(stable, candidate, intervals=intervals))

    assert [guard.verdict for guard in results] == verdicts


def test_messages_contain_the_numbers() -> None:
    errors, latency = judge(step_tests(sums(900, 9, ms=20), sums(100, 6, ms=28), intervals=20))

    assert (errors.verdict, errors.n) == (FAIL, 2000)
    assert errors.message == (
        "worse than allowed: 120 of 2,000 requests failed, 6.0 times as often as stable"
    )
    assert (errors.stable, errors.candidate) == ("1.00%", "6.00%")
    assert errors.limit == "≤ 1.25% (1.25 times stable)"
    assert errors.source == "Triton request counters"
    assert "99% confidence at any time" in errors.statistic
    assert latency.message == (
        "worse than allowed: +40% against stable; worse than the limit in 20 of 20 blocks"
    )
    assert latency.source == "Triton counters, mean"


def test_enough_clean_requests_are_shown_to_be_within_the_limit() -> None:
    strict = judge(step_tests(sums(900), sums(100), intervals=2), is_strict=True)
    later = judge(step_tests(sums(900), sums(100), intervals=40), is_strict=True)

    assert [guard.verdict for guard in strict] == [WAIT, WAIT]
    assert strict[0].message == ("not yet shown to be within the limit; 0 of 200 requests failed")
    assert [guard.verdict for guard in later] == [PASS, PASS]
    assert later[0].message == "shown to be within the limit; 0 of 4,000 requests failed"


def test_numbers_that_stopped_coming_turn_every_verdict_into_not_known() -> None:
    tests = step_tests(sums(900), sums(100, 50), intervals=5)

    verdicts = judge(tests, unknown="no reading of the candidate since 12:00:00 UTC")

    assert {guard.verdict for guard in verdicts} == {WAIT}
    assert {guard.message for guard in verdicts} == {
        "no reading of the candidate since 12:00:00 UTC"
    }


def test_a_failed_guard_stays_failed_for_the_step() -> None:
    bad = step_tests(sums(900), sums(100, 50), intervals=2)
    better = sequential_tests.advance(
        bad, Side(sums(90_000), sums(50_000)), procedure=Procedure(SERVER_LIMITS)
    )

    assert judge(better)[0].verdict == FAIL


def test_absolute_limits_need_no_stable_revision() -> None:
    limits = (
        GuardLimit(metric="error_rate", max=0.02),
        GuardLimit(metric="latency_mean", max=10.0),
        GuardLimit(metric="gpu_utilisation", max=0.01),
        GuardLimit(metric="gpu_memory", max=8.0),
    )
    facts = SideFacts(gpu_memory_gib=9.5)
    tests = step_tests(sums(0), sums(100, 10, ms=14), intervals=20, limits=limits, facts=facts)

    verdicts = judge(tests, limits=limits, facts=facts)

    assert [guard.verdict for guard in verdicts] == [FAIL] * 4
    assert verdicts[3].message == "it used more GPU memory than the limit"
    assert [guard.limit for guard in verdicts] == ["≤ 2.00%", "≤ 10.0 ms", "≤ 1%", "≤ 8.0 GiB"]


@pytest.mark.parametrize(
    ("stable", "verdict"), [(9.0, PASS), (7.0, FAIL), (None, WAIT)], ids=["within", "above", "?"]
)
def test_measured_memory_is_judged_by_its_ratio_as_well(
    monkeypatch: pytest.MonkeyPatch, stable: float | None, verdict: Verdict
) -> None:
    kind = replace(gpu_memory.KIND, not_compared="")
    monkeypatch.setattr(catalogue, "KINDS", (kind,))
    limit = GuardLimit(metric="gpu_memory", max=12.0, max_ratio=1.2)
    by = CounterInputs(
        tests=StepTests(),
        alpha=0.01,
        is_strict=False,
        min_requests=0,
        stable=SideFacts(gpu_memory_gib=stable),
        candidate=SideFacts(gpu_memory_gib=9.5),
    )

    (result,) = counter_verdicts.judge((limit,), by)

    assert result.verdict == verdict


def test_throughput_and_cost_are_compared_per_busy_gpu_second() -> None:
    """One tenth of the requests must not count as one tenth of the throughput."""
    limits = (
        GuardLimit(metric="throughput_per_gpu", max_ratio=1.2),
        GuardLimit(metric="cost_per_1000", max_ratio=1.2),
    )
    facts = SideFacts(usd_per_gpu_hour=3.6)
    slow = Sums(success=100, inferences=100, busy_ms=200, observed_ms=5000)

    same = judge(
        step_tests(sums(900), sums(100), intervals=20, limits=limits, facts=facts),
        limits=limits,
        facts=facts,
    )
    worse = judge(
        step_tests(sums(900), slow, intervals=20, limits=limits, facts=facts),
        limits=limits,
        facts=facts,
    )

    assert [guard.verdict for guard in same] == [PASS, PASS]
    assert [guard.verdict for guard in worse] == [FAIL, FAIL]
    assert (worse[0].stable, worse[0].candidate) == ("1,000/s", "500/s")
    assert (worse[1].stable, worse[1].candidate) == ("$0.0010", "$0.0020")
    assert worse[0].limit == "≥ 833/s (stable / 1.2)"


def test_without_a_price_the_cost_is_not_known() -> None:
    limits = (GuardLimit(metric="cost_per_1000", max_ratio=1.2),)

    (verdicts,) = judge(step_tests(sums(900), sums(100), limits=limits), limits=limits)

    assert (verdicts.verdict, verdicts.message) == (WAIT, "the price of its node is not known")


@pytest.mark.parametrize(
    ("weight", "stable", "candidate", "verdict"),
    [
        (10, 900, 100, PASS),
        (10, 500, 500, FAIL),
        (10, 9, 1, PASS),
        (100, 3, 900, PASS),
        (100, 300, 900, FAIL),
        (10, None, 100, WAIT),
        (10, 900, None, WAIT),
        (10, 0, 0, WAIT),
    ],
)
def test_the_observed_share_is_held_against_the_requested_one(
    weight: int, stable: int | None, candidate: int | None, verdict: Verdict
) -> None:
    split = evidence.judge_split(weight=weight, stable=stable, candidate=candidate)

    assert split.verdict == verdict
    assert evidence.stopping([split]) == ()


def test_the_evidence_hash_follows_verdicts_and_not_running_numbers() -> None:
    def digest(candidate: Sums) -> str:
        verdicts = judge(step_tests(sums(900), candidate), min_requests=10)
        return evidence.digest(rollout_id=1, step_index=0, phase="running", guards=verdicts)

    assert digest(sums(100)) == digest(sums(101, ms=4.1))
    assert digest(sums(100)) != digest(sums(110, 20))


def test_changed_verdicts_are_described() -> None:
    before = judge(step_tests(sums(900), sums(100)))
    after = judge(step_tests(sums(900), sums(100, 9), intervals=14))

    assert evidence.describe_changes(before, before) == ""
    assert evidence.describe_changes(before, after) == (
        "error ratio: pass → fail (worse than allowed: 126 of 1,400 requests failed)"
    )
    assert evidence.describe_changes(before, after[:1]).endswith("; mean latency: no longer judged")


STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 100}]


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        ({"kind": "twilight"}, "kind"),
        ({"guards": [{"metric": "p95", "max": 1}]}, "guards"),
        ({"guards": [{"metric": "error_rate"}]}, "guards"),
        ({"guards": [{"metric": "error_rate", "max": 1}]}, "guards"),
        ({"guards": [{"metric": "error_rate", "max": 0}]}, "guards"),
        ({"guards": [{"metric": "error_rate", "max": True}]}, "guards"),
        ({"guards": [{"metric": "error_rate", "max": float("nan")}]}, "guards"),
        ({"guards": [{"metric": "gpu_utilisation", "max_ratio": 2}]}, "guards"),
        ({"guards": [{"metric": "throughput_per_gpu", "max": 2}]}, "guards"),
        ({"guards": [{"metric": "error_rate", "max": 0.1}] * 2}, "guards"),
        ({"analysis": {"alpha": 0.5}}, "analysis"),
        ({"analysis": {"is_strict": 1}}, "analysis"),
        ({"move_alias": "no good"}, "move_alias"),
        ({"drain_seconds": 1}, "drain_seconds"),
        ({"guards": [{"metric": "error_rate", "max": 0.1, "dry_run": 1}]}, "guards"),
        ({"warmup_seconds": -1}, "warmup_seconds"),
        ({"warmup_seconds": 3601}, "warmup_seconds"),
        ({"warmup_seconds": "60"}, "warmup_seconds"),
        ({"watch_seconds": -1}, "watch_seconds"),
        ({"watch_seconds": 86_401}, "watch_seconds"),
        ({"watch_seconds": None}, "watch_seconds"),
        ({"speed": 1}, "speed"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_its_field(
    plan: dict[str, object], field: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        rollout_plan.check(plan, STEPS)

    assert {path.partition(".")[0] for path in refusal.value.fields} == {field}


def test_a_plan_survives_its_row_and_an_empty_one_has_the_defaults() -> None:
    plan = rollout_plan.check(
        {
            "kind": "blue-green",
            "guards": [{"metric": "queue_time", "max": 20, "max_ratio": 2, "dry_run": True}],
            "analysis": {"alpha": 0.05, "is_strict": True},
            "move_alias": "champion",
            "drain_seconds": 60,
            "warmup_seconds": 0,
            "watch_seconds": 0,
        },
        [],
    )

    assert rollout_plan.read_stored(plan.to_json(), plan.steps_to_json()) == plan
    assert (plan.guards.tests, plan.guards.limits[0].tests) == (0, 2), "a dry run spends no alpha"
    assert (plan.warmup_seconds, plan.watched_seconds) == (0, 0)
    assert [step.weight for step in plan.steps] == [0]
    assert rollout_plan.read_stored({}, STEPS) == rollout_plan.check({}, STEPS)
    assert [limit.metric for limit in rollout_plan.read_stored({}, []).guards.limits] == [
        "error_rate",
        "lost_requests",
        "latency_mean",
    ]
