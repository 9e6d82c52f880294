"""Model-quality guards: two samples of posted sums and a limit become one line of the evidence.

    Label distribution    Jensen-Shannon distance <= limit;     chi-square test of homogeneity
    Output length         Kolmogorov-Smirnov distance <= limit; its test
    Structured output     failure rate above stable <= limit;   Fisher's exact test, one-sided
    Embedding drift       cosine distance between the mean vectors <= limit; Kolmogorov-Smirnov test
                          on the distances to the reference set

Interim looks are made when both samples have reached 100, 200, 400, … (`two_sample_tests` explains
why). A guard fails only when the effect exceeds its limit and is statistically significant; it
passes when the effect is within the limit; otherwise there is not enough data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deployments.guards.domain.answers import answer_windows
from deployments.guards.domain.answers import two_sample_tests as statistics
from deployments.guards.domain.answers.answer_metrics import (
    BAD,
    QUALITY,
    AnswerKind,
    QualityMetric,
    Summary,
)
from deployments.guards.domain.answers.two_sample_tests import Compared, InterimLook
from deployments.guards.domain.evidence import GuardResult, Verdict

# The chance that a good candidate is ever stopped by one of these guards.
ALPHA: Final = 0.001
LIMIT_OF: Final[Mapping[AnswerKind, QualityMetric]] = {
    AnswerKind.LABELS: "label_drift",
    AnswerKind.LENGTHS: "output_length",
    AnswerKind.STRUCTURED: "structured_failures",
    AnswerKind.EMBEDDINGS: "embedding_drift",
}
_SOURCE: Final = "posted by the service"
_TESTS: Final = {
    AnswerKind.LABELS: "chi-square",
    AnswerKind.LENGTHS: "Kolmogorov-Smirnov",
    AnswerKind.STRUCTURED: "Fisher",
    AnswerKind.EMBEDDINGS: "Kolmogorov-Smirnov",
}


def judge(
    kind: AnswerKind, *, stable: Sequence[Summary], candidate: Sequence[Summary], limit: float
) -> GuardResult:
    """Judge one summary for each window of time, the same windows of both sides, the oldest first."""
    sizes = [sum(batch.n for batch in side) for side in (stable, candidate)]
    look = statistics.interim_look(min(sizes), alpha=ALPHA)
    if look is None:
        message = (
            f"{sizes[1]:,} of {statistics.FIRST} values of the candidate and {sizes[0]:,} of "
            f"{statistics.FIRST} of stable so far"
        )
        return _guard(kind, ("", ""), limit, sizes[1], Verdict.NOT_ENOUGH, message, "")
    both = answer_windows.up_to(stable, candidate, look.size)
    comparison = _compare(kind, *both)
    is_within = comparison.effect <= limit
    is_chance = comparison.p > look.level
    verdict = Verdict.PASSED if is_within else Verdict.NOT_ENOUGH if is_chance else Verdict.FAILED
    message = f"{QUALITY[LIMIT_OF[kind]].figure} {comparison.effect:.3f}"
    message += (
        ""
        if is_within
        else ", not statistically significant"
        if is_chance
        else ", statistically significant"
    )
    statistic = _statistic(kind, comparison, look)
    shown = (_shown(kind, both[0]), _shown(kind, both[1]))
    return _guard(kind, shown, limit, both[1].n, verdict, message, statistic)


def judge_disagreement(*, wrong: int, answered: int, limit: float) -> GuardResult:
    """Judge the golden requests that both sides answered in the last round of probes."""
    if not answered:
        verdict, message = Verdict.NOT_ENOUGH, "no golden request was answered by both sides yet"
    else:
        is_good = wrong / answered <= limit
        verdict = Verdict.PASSED if is_good else Verdict.FAILED
        message = f"{wrong} of {answered} golden requests are answered differently by stable"
    return GuardResult(
        guard=QUALITY["disagreement"].label,
        stable="",
        candidate=f"{wrong / answered:.0%}" if answered else "",
        limit=f"≤ {limit:.0%}",
        n=answered,
        verdict=verdict,
        message=message,
        source="golden requests",
    )


def _compare(kind: AnswerKind, stable: Summary, candidate: Summary) -> Compared:
    if kind == AnswerKind.LABELS:
        return statistics.compare_labels(stable.counts, candidate.counts)
    if kind == AnswerKind.LENGTHS:
        return statistics.compare_ordered(stable.counts, candidate.counts)
    if kind == AnswerKind.STRUCTURED:
        return statistics.compare_failures(_failed(stable), _failed(candidate))
    shape = statistics.compare_ordered(stable.counts, candidate.counts)
    return Compared(statistics.cosine_distance(stable.total, candidate.total), shape.p)


def _failed(summary: Summary) -> tuple[int, int]:
    return summary.counts.get(BAD, 0), summary.n


def _shown(kind: AnswerKind, summary: Summary) -> str:
    if kind == AnswerKind.LABELS:
        name, count = max(summary.counts.items(), key=lambda item: (item[1], item[0]))
        return f"{name} {count / summary.n:.0%}"
    if kind == AnswerKind.LENGTHS:
        return f"median {statistics.median(summary.counts):g}"
    if kind == AnswerKind.STRUCTURED:
        return f"{summary.counts.get(BAD, 0) / summary.n:.2%} failed"
    return f"{statistics.mean(summary.counts):.3f} from reference"


def _statistic(kind: AnswerKind, comparison: Compared, look: InterimLook) -> str:
    return f"{_TESTS[kind]} p = {comparison.p:.2g}; fails below {look.level:.2g} at look {look.number + 1}"


def _guard(
    kind: AnswerKind,
    shown: tuple[str, str],
    limit: float,
    n: int,
    verdict: Verdict,
    message: str,
    statistic: str,
) -> GuardResult:
    return GuardResult(
        guard=QUALITY[LIMIT_OF[kind]].label,
        stable=shown[0],
        candidate=shown[1],
        limit=f"≤ {limit:g}",
        n=n,
        verdict=verdict,
        message=message,
        source=_SOURCE,
        statistic=statistic,
    )
