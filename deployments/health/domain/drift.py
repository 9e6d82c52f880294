"""Whether a day's answers and inputs are like those of the first days after the promotion.

A day is compared with each of the reference's days, at most the seven after the promotion, and the *most similar* one
counts: a Sunday may be like the first Sunday. It fails when that day's distance exceeds the limit of the plan's guards
and the difference is significant at 0.1%.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from deployments.guards.domain.answers import two_sample_tests as statistics
from deployments.guards.domain.answers.answer_metrics import BAD, AnswerKind, Summary
from deployments.guards.domain.answers.two_sample_tests import Compared
from deployments.states import HealthVerdict

REFERENCE_DAYS: Final = 7
_LEVEL: Final = 0.001


@dataclass(frozen=True, slots=True)
class DriftKind:
    """A kind of answers that is watched for drift. `limit` bounds the distance that `figure` names; it is the
    default of the guards of a rollout.
    """

    label: str
    figure: str
    limit: float


KINDS: Final[Mapping[AnswerKind, DriftKind]] = {
    AnswerKind.LABELS: DriftKind("Labels of answers", "Jensen-Shannon distance", 0.15),
    AnswerKind.LENGTHS: DriftKind("Lengths of answers", "largest gap between distributions", 0.2),
    AnswerKind.STRUCTURED: DriftKind("Structured output", "increase in failure rate", 0.02),
    AnswerKind.EMBEDDINGS: DriftKind("Embeddings of answers", "cosine distance of means", 0.05),
    AnswerKind.INPUT_LABELS: DriftKind("Labels of inputs", "Jensen-Shannon distance", 0.15),
    AnswerKind.INPUT_LENGTHS: DriftKind(
        "Lengths of inputs", "largest gap between distributions", 0.2
    ),
}


@dataclass(frozen=True, slots=True)
class DayVerdict:
    """The verdict of a day. `effect` None means not compared. `p` is the chance of such a day if nothing
    changed.
    """

    verdict: HealthVerdict
    message: str
    n: int
    effect: float | None = None
    p: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{**stored, "verdict": HealthVerdict(stored["verdict"])})


def judge(kind: AnswerKind, day: Summary, reference: Sequence[Summary]) -> DayVerdict:
    """Judge a day against `reference`, the recorded days before it, in any order."""
    if day.n < statistics.FIRST:
        return _not_known(day, f"{day.n:,} of {statistics.FIRST} values were posted")
    usable = [summary for summary in reference if summary.n >= statistics.FIRST]
    if not usable:
        return _not_known(day, "the reference is being recorded")
    of = KINDS[kind]
    if kind == AnswerKind.EMBEDDINGS and any(len(r.total) != len(day.total) for r in usable):
        return _not_known(day, "the size of the embeddings changed")
    nearest = min((compare(kind, summary, day) for summary in usable), key=lambda c: c.effect)
    is_failed = nearest.effect > of.limit and nearest.p <= _LEVEL
    text = f"{of.figure} {nearest.effect:.3f}, limit {of.limit:g}"
    text += (
        f", compared with the most similar of {len(usable)} reference days"
        if len(usable) > 1
        else ""
    )
    verdict = HealthVerdict.FAILED if is_failed else HealthVerdict.OK
    return DayVerdict(verdict, text, day.n, nearest.effect, nearest.p)


def compare(kind: AnswerKind, reference: Summary, day: Summary) -> Compared:
    if kind in (AnswerKind.LABELS, AnswerKind.INPUT_LABELS):
        return statistics.compare_labels(reference.counts, day.counts)
    if kind in (AnswerKind.LENGTHS, AnswerKind.INPUT_LENGTHS):
        return statistics.compare_ordered(reference.counts, day.counts)
    if kind == AnswerKind.STRUCTURED:
        return statistics.compare_failures(_failed(reference), _failed(day))
    shape = statistics.compare_ordered(reference.counts, day.counts)
    return Compared(statistics.cosine_distance(reference.total, day.total), shape.p)


def merge(first: Summary, second: Summary) -> Summary:
    if first.total and second.total and len(first.total) != len(second.total):
        # Of another size: only the later ones can be compared with what comes.
        return second
    pairs = zip(first.total, second.total, strict=True) if first.total and second.total else None
    total = tuple(map(math.fsum, pairs)) if pairs else first.total or second.total
    return Summary(first.n + second.n, statistics.add([first.counts, second.counts]), total)


def _failed(summary: Summary) -> tuple[int, int]:
    return summary.counts.get(BAD, 0), summary.n


def _not_known(day: Summary, message: str) -> DayVerdict:
    return DayVerdict(HealthVerdict.NOT_KNOWN, message, day.n)
