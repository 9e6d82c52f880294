"""Model-quality guards: exact numbers of the tests, the limits, and how often they cry wolf."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from deployments.guards.domain.answers import answer_metrics, answer_verdicts
from deployments.guards.domain.answers import two_sample_tests as statistics
from deployments.guards.domain.answers.answer_metrics import AnswerKind, Summary
from deployments.plans.domain import rollout_plan
from portal.core.definitions import Rejected


def summary(**counts: int) -> Summary:
    return Summary(sum(counts.values()), counts)


@pytest.mark.parametrize(
    ("x", "degrees", "tail"),
    [(3.841, 1, 0.05001368), (5.991, 2, 0.05001162), (18.307, 10, 0.05000059), (0, 3, 1.0)],
)
def test_chi_square_tails_are_those_of_the_tables(x: float, degrees: int, tail: float) -> None:
    assert statistics.chi_square_tail(x, degrees) == pytest.approx(tail, abs=1e-8)


def test_fishers_test_is_exact() -> None:
    # The lady and her tea (Fisher 1935): 3 of 4 right by chance, 17 of 70 ways.
    comparison = statistics.compare_failures((1, 4), (3, 4))

    assert comparison.p == pytest.approx(17 / 70)
    assert comparison.effect == 0.5


def test_distances_are_zero_for_equal_and_one_for_disjoint_distributions() -> None:
    same = statistics.compare_labels({"a": 50, "b": 50}, {"a": 500, "b": 500})
    disjoint = statistics.compare_labels({"a": 100}, {"b": 100})
    lengths = statistics.compare_ordered({"1": 100}, {"2": 100})

    assert (same.effect, same.p) == (0.0, 1.0)
    assert disjoint.effect == 1.0
    assert disjoint.p < 1e-40
    assert lengths.effect == 1.0
    assert lengths.p < 1e-40


def test_interim_looks_follow_each_doubling_of_the_smaller_sample_at_levels_that_sum_to_alpha() -> (
    None
):
    looks = [statistics.interim_look(n, alpha=0.01) for n in (99, 100, 199, 200, 799, 10**9)]

    assert looks[0] is None
    assert [(look.number, look.size) for look in looks[1:] if look] == [
        (0, 100),
        (0, 100),
        (1, 200),
        (2, 400),
        (10, 102_400),
    ]
    levels = [0.01 / ((k + 1) * (k + 2)) for k in range(11)]
    assert sum(levels) < 0.01
    assert looks[1] is not None
    assert looks[1].level == levels[0]


def test_too_few_values_say_how_many_are_missing() -> None:
    guard = answer_verdicts.judge(
        AnswerKind.LABELS, stable=[summary(cat=70)], candidate=[summary(cat=20, dog=19)], limit=0.1
    )

    assert (guard.verdict, guard.n) == ("not enough data", 39)
    assert guard.message == "39 of 100 values of the candidate and 70 of 100 of stable so far"


def test_shifted_labels_fail_with_the_numbers_that_led_to_it() -> None:
    guard = answer_verdicts.judge(
        AnswerKind.LABELS,
        stable=[summary(cat=500, dog=500)],
        candidate=[summary(cat=900, dog=100)],
        limit=0.15,
    )

    assert guard.verdict == "fail"
    assert (guard.stable, guard.candidate, guard.limit) == ("dog 50%", "cat 90%", "≤ 0.15")
    assert guard.message == "Jensen-Shannon distance 0.383, statistically significant"
    assert guard.statistic.startswith("chi-square p = ")


def test_beyond_the_limit_but_possibly_by_chance_is_not_enough_data() -> None:
    guard = answer_verdicts.judge(
        AnswerKind.STRUCTURED,
        stable=[summary(good=99, bad=1)],
        candidate=[summary(good=96, bad=4)],
        limit=0.02,
    )

    assert (guard.verdict, guard.message) == (
        "not enough data",
        "increase in failure rate 0.030, not statistically significant",
    )


def test_a_change_within_the_limit_passes_however_sure_it_is() -> None:
    guard = answer_verdicts.judge(
        AnswerKind.STRUCTURED,
        stable=[summary(good=100_000, bad=0)],
        candidate=[summary(good=99_000, bad=1_000)],
        limit=0.02,
    )

    assert guard.verdict == "pass"


def test_data_after_an_interim_look_wait_for_the_next() -> None:
    first = [summary(good=100, bad=0)]
    later = [*first, summary(good=0, bad=99)]

    before = answer_verdicts.judge(AnswerKind.STRUCTURED, stable=later, candidate=first, limit=0.02)
    after = answer_verdicts.judge(AnswerKind.STRUCTURED, stable=later, candidate=later, limit=0.02)

    assert (before.verdict, after.verdict) == ("pass", "pass")
    assert after.candidate == "0.00% failed"


def test_vectors_that_drifted_from_the_reference_set_fail() -> None:
    generator = random.Random(7)

    def batch(turn: float) -> Summary:
        rows = [[1 + generator.gauss(0, 0.1), turn + generator.gauss(0, 0.1)] for _ in range(150)]
        vectors = answer_metrics.unit_vectors(rows)
        counts = answer_metrics.distances(vectors, [1.0, 0.0])
        return Summary(150, counts, answer_metrics.sum_vectors(vectors, 2))

    same = answer_verdicts.judge(
        AnswerKind.EMBEDDINGS, stable=[batch(0)], candidate=[batch(0)], limit=0.05
    )
    judged = answer_verdicts.judge(
        AnswerKind.EMBEDDINGS, stable=[batch(0)], candidate=[batch(0.6)], limit=0.05
    )

    assert same.verdict == "pass"
    assert judged.verdict == "fail"
    assert judged.message.startswith("cosine distance of means 0.1")


def test_watching_two_equal_streams_to_the_end_cries_wolf_less_than_it_may() -> None:
    """1,000 A/A streams, tested after each batch of 50 up to 1,600, at a level of 10%."""
    generator = random.Random(2026)
    alarms = 0
    for _ in range(1000):
        sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        has_cried = False
        for n in range(50, 1601, 50):
            for side in sides:
                side.update(generator.choices("abc", (6, 3, 1), k=50))
            look = statistics.interim_look(n, alpha=0.1)
            if look is not None and look.size == n:
                has_cried = has_cried or statistics.compare_labels(*sides).p <= look.level
        alarms += has_cried

    assert 20 <= alarms <= 100


def test_lengths_are_kept_in_buckets_of_two_digits() -> None:
    summed = answer_metrics.sum_up(AnswerKind.LENGTHS, [0, 7, 99, 123, 129, 4567])

    assert (summed.n, summed.counts) == (6, {"0": 1, "7": 1, "99": 1, "120": 2, "4500": 1})
    assert statistics.median(summed.counts) == 99


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (AnswerKind.LABELS, []),
        (AnswerKind.LABELS, "cat"),
        (AnswerKind.LABELS, ["a" * 101]),
        (AnswerKind.LABELS, ["a\0"]),
        (AnswerKind.LABELS, [str(n) for n in range(201)]),
        (AnswerKind.LENGTHS, [-1]),
        (AnswerKind.LENGTHS, [1.5]),
        (AnswerKind.LENGTHS, [True]),
        (AnswerKind.STRUCTURED, [1]),
        (AnswerKind.STRUCTURED, [True] * 1001),
    ],
)
def test_values_of_another_kind_are_refused(kind: AnswerKind, values: object) -> None:
    with pytest.raises(Rejected):
        answer_metrics.sum_up(kind, values)


@pytest.mark.parametrize(
    "values",
    [[[1.0]], [[1.0, 2.0], [1.0]], [[0, 0]], [["a", 1]], [[1.7e308] * 3], [1], [[1.0] * 4097]],
)
def test_what_is_no_vector_is_refused(values: object) -> None:
    with pytest.raises(Rejected):
        answer_metrics.unit_vectors(values)


def test_limits_of_a_plan_are_numbers_or_off() -> None:
    steps = [{"weight": 10, "soak_seconds": 60, "min_requests": 100}]
    plan = rollout_plan.check({"quality": {"label_drift": 1, "embedding_drift": None}}, steps)
    assert plan.quality_limits == {
        **{metric: kind.default for metric, kind in answer_metrics.QUALITY.items()},
        "label_drift": 1.0,
        "embedding_drift": None,
    }
    refused: list[Any] = [{"nothing": 0.1}, {"label_drift": 2}, {"label_drift": True}, []]
    for wrong in refused:
        with pytest.raises(Rejected) as refusal:
            rollout_plan.check({"quality": wrong}, steps)
        assert all(path.startswith("quality") for path in refusal.value.fields)
