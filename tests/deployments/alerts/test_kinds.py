"""Each kind of alert: when it opens, when it ends, and when it is not known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deployments.alerts.domain import catalogue
from deployments.alerts.domain.kinds import (
    answers,
    budget,
    cluster_unreachable,
    gpu_memory,
    idle_gpus,
    queue_depth,
    slo_burn,
)
from deployments.alerts.domain.kinds.answers import AnswerFacts
from deployments.alerts.domain.kinds.cluster_unreachable import ClusterFacts
from deployments.alerts.domain.kinds.gpu_memory import MemoryFacts
from deployments.alerts.domain.kinds.idle_gpus import IdleFacts
from deployments.alerts.domain.kinds.queue_depth import QueueFacts
from deployments.targets.domain import burn
from deployments.targets.domain.burn import RULES, RequestSums

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("facts", "is_firing"),
    [
        (QueueFacts(lowest=10, mean=12.0, readings=3), True),
        # Between the limits an open alert stays and none opens.
        (QueueFacts(lowest=9, mean=12.0, readings=60), None),
        (QueueFacts(lowest=0, mean=5.0, readings=60), None),
        (QueueFacts(lowest=0, mean=4.9, readings=60), False),
        (QueueFacts(lowest=50, mean=50.0, readings=2), None),
        (None, None),
    ],
)
def test_queue(facts: QueueFacts | None, is_firing: bool | None) -> None:
    assert queue_depth.decide(facts).is_firing is is_firing


@pytest.mark.parametrize(
    ("facts", "is_firing"),
    [
        (MemoryFacts(peak_mib=95, gpu_mib=100), True),
        (MemoryFacts(peak_mib=94, gpu_mib=100), False),
        (MemoryFacts(peak_mib=94, gpu_mib=0), None),
        (None, None),
    ],
)
def test_gpu_memory(facts: MemoryFacts | None, is_firing: bool | None) -> None:
    assert gpu_memory.decide(facts).is_firing is is_firing


@pytest.mark.parametrize(
    ("facts", "is_firing"),
    [
        (IdleFacts(gpus=1, known_hours=24, busy_share=0.0099), True),
        (IdleFacts(gpus=1, known_hours=23, busy_share=0.0), None),
        (IdleFacts(gpus=1, known_hours=24, busy_share=0.01), None),
        (IdleFacts(gpus=1, known_hours=24, busy_share=0.02), False),
        (IdleFacts(gpus=0, known_hours=24, busy_share=0.0), False),
        (None, None),
    ],
)
def test_idle_gpus(facts: IdleFacts | None, is_firing: bool | None) -> None:
    assert idle_gpus.decide(facts).is_firing is is_firing


@pytest.mark.parametrize(
    ("facts", "is_firing"),
    [
        (ClusterFacts(False, AT - timedelta(minutes=5), "timeout"), True),
        (ClusterFacts(False, None, ""), True),
        (ClusterFacts(False, AT - timedelta(seconds=299), "timeout"), None),
        (ClusterFacts(True, AT - timedelta(hours=1), ""), False),
        (ClusterFacts(None, None, ""), None),
    ],
)
def test_cluster(facts: ClusterFacts, is_firing: bool | None) -> None:
    assert cluster_unreachable.decide(facts, AT).is_firing is is_firing


@pytest.mark.parametrize(
    ("crossed", "message"),
    [
        (set(), ""),
        ({"50%"}, ""),
        ({"50%", "80%"}, "80% of this month's budget is spent."),
        (
            {"forecast", "50%", "80%"},
            "At the current rate the month will cost more than its budget.",
        ),
        ({"forecast", "50%", "80%", "100%"}, "This month's budget is spent."),
    ],
)
def test_budget(crossed: set[str], message: str) -> None:
    finding = budget.decide(crossed)

    assert (finding.is_firing, finding.message) == (bool(message), message)


def test_answers() -> None:
    assert answers.decide(AnswerFacts(("Labels: moved",), is_judged=True)).message == (
        "Labels: moved."
    )
    assert answers.decide(AnswerFacts((), is_judged=True)).is_firing is False
    assert answers.decide(AnswerFacts((), is_judged=False)).is_firing is None


def test_a_burning_target_says_how_fast_and_what_is_left() -> None:
    long, short = RequestSums(10_000, 500, 60), RequestSums(1_000, 100, 5)
    rules = [
        burn.judge(RULES[0], long, short, budget=0.001),
        burn.judge(RULES[1], RequestSums(), RequestSums(), budget=0.001),
    ]
    window = RequestSums(1_000_000, 500, 10_000)
    evaluation = burn.evaluate(
        objective_percent=99.9, window=window, window_minutes=10_080, rules=rules
    )

    finding = slo_burn.decide(evaluation)

    assert finding.is_firing is True
    assert finding.message == (
        "Its error budget burns 50.0 times as fast as allowed over 1 h and 100.0 times over 5 min. "
        "50% of the budget is left."
    )


def test_codes_fit_their_column() -> None:
    assert all(len(code) <= 20 for code in catalogue.KINDS)
    assert {code for code, kind in catalogue.KINDS.items() if not kind.notifies} == {
        "budget",
        "answers",
    }
