"""Judge complete days of what a service posted about the stable revision's answers and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain.answers.answer_metrics import AnswerKind, Summary
from deployments.health.domain import drift
from deployments.health.domain.drift import DayVerdict
from deployments.models import AnswerDay, QualityObservation, Revision

_DAY: Final = timedelta(days=1)
# Embeddings have thousands of numbers a row.
_CHUNK: Final = 50


@dataclass(frozen=True, slots=True)
class JudgedDays:
    """The verdicts of whole days. `judged` counts the days since the promotion that are done; `recorded` are to
    be stored with them.
    """

    judged: int
    verdicts: Mapping[AnswerKind, DayVerdict]
    recorded: tuple[AnswerDay, ...]


def judge(revision: Revision, *, since: datetime, judged: int, at: datetime) -> JudgedDays:
    """Judge the days that are over and were not judged. Days 0, 1, … began at `since`. Of later days than the
    reference only the last one is judged: after a pause of the watch the days between say nothing new.
    """
    complete = int((at - since) / _DAY)
    if complete <= judged:
        return JudgedDays(judged, {}, ())
    reference = _reference_of(revision)
    recorded: list[AnswerDay] = []
    verdicts: dict[AnswerKind, DayVerdict] = {}
    for day in range(judged, complete):
        if day >= drift.REFERENCE_DAYS and day != complete - 1:
            continue
        for kind, summary in _posted(revision, since + day * _DAY).items():
            known = reference.setdefault(kind, {})
            verdicts[kind] = drift.judge(kind, summary, list(known.values()))
            if day < drift.REFERENCE_DAYS and day not in known:
                known[day] = summary
                recorded.append(_row(revision, kind, day, summary))
    return JudgedDays(complete, verdicts, tuple(recorded))


def _reference_of(revision: Revision) -> dict[AnswerKind, dict[int, Summary]]:
    reference: dict[AnswerKind, dict[int, Summary]] = {}
    for row in AnswerDay.objects.filter(revision=revision):
        summary = Summary(row.n, row.counts, tuple(row.total))
        reference.setdefault(AnswerKind(row.kind), {})[row.day] = summary
    return reference


def _posted(revision: Revision, start: datetime) -> dict[AnswerKind, Summary]:
    rows = QualityObservation.objects.filter(
        revision=revision, at__gte=start, at__lt=start + _DAY
    ).order_by("id")
    sums: dict[AnswerKind, Summary] = {}
    for row in rows.iterator(chunk_size=_CHUNK):
        kind, summary = AnswerKind(row.kind), Summary(row.n, row.counts, tuple(row.total))
        sums[kind] = drift.merge(sums[kind], summary) if kind in sums else summary
    return sums


def _row(revision: Revision, kind: AnswerKind, day: int, summary: Summary) -> AnswerDay:
    return AnswerDay(
        revision=revision,
        kind=kind,
        day=day,
        n=summary.n,
        counts=dict(summary.counts),
        total=list(summary.total),
    )
