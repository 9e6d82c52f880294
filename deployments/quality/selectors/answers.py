"""The observations that services posted about the answers of both sides of a rollout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet

from deployments.guards.domain.answers import answer_windows
from deployments.guards.domain.answers.answer_metrics import AnswerKind, Summary
from deployments.guards.domain.answers.answer_windows import AnswerBatch
from deployments.models import QualityObservation, Rollout
from portal.core import clock

# Keys and times only.
_MOST_KEYS: Final = 50_000
_MOST_WINDOWS: Final = 100
_BEFORE: Final = timedelta(hours=1)
Sides = tuple[list[Summary], list[Summary]]


def posted_kinds(rollout: Rollout) -> set[str]:
    """Return the kinds posted for either side since the rollout began."""
    return set(
        _since(rollout, rollout.created_at).order_by().values_list("kind", flat=True).distinct()
    )


def windows_of(rollout: Rollout, kind: AnswerKind) -> Sides:
    """Return the summaries of both sides window by window. Once stable gets no requests, its side is what was
    posted for it in the hour before.
    """
    until = rollout.reference.get("until")
    if until is not None:
        return _beside_before(rollout, kind, datetime.fromisoformat(until))
    rows = _rows(rollout, _since(rollout, rollout.created_at).filter(kind=kind))
    shared = answer_windows.common(rows, now=clock.now())
    return _summaries(shared)


def _beside_before(rollout: Rollout, kind: AnswerKind, until: datetime) -> Sides:
    posted = QualityObservation.objects.filter(kind=kind).order_by("id")
    before = posted.filter(
        revision=rollout.stable_revision_id, at__gt=until - _BEFORE, at__lte=until
    )
    since = rollout.step_started_at or until
    after = posted.filter(revision=rollout.candidate_revision_id, at__gte=since)
    reference = [sides[0] for sides in _one_sided(_rows(rollout, before))]
    _, candidate = _summaries([([], own) for _, own in _one_sided(_rows(rollout, after))])
    stable, _ = _summaries([([key for keys in reference for key in keys], [])] if reference else [])
    return stable, candidate


def _one_sided(rows: Iterable[AnswerBatch]) -> list[tuple[list[int], list[int]]]:
    """Return the windows of rows of one side, as `common` does for two; each window is its own pair."""
    return answer_windows.windows(rows, now=clock.now())[:_MOST_WINDOWS]


def _since(rollout: Rollout, at: datetime) -> QuerySet[QualityObservation]:
    """Return observations posted for both sides, oldest first; a baseline answers as stable does."""
    revisions = (
        rollout.stable_revision_id,
        rollout.candidate_revision_id,
        rollout.baseline_revision_id,
    )
    return QualityObservation.objects.filter(revision__in=revisions, at__gte=at).order_by("id")


def _rows(rollout: Rollout, posted: QuerySet[QualityObservation]) -> list[AnswerBatch]:
    keys = posted.values_list("pk", "at", "revision_id")[:_MOST_KEYS]
    return [
        AnswerBatch(key, at, revision == rollout.candidate_revision_id)
        for key, at, revision in keys
    ]


def _summaries(windows: Sequence[tuple[list[int], list[int]]]) -> Sides:
    keys = [key for sides in windows for side in sides for key in side]
    observations = QualityObservation.objects.in_bulk(keys)
    by_key: Mapping[int, Summary] = {
        key: Summary(row.n, row.counts, tuple(row.total)) for key, row in observations.items()
    }

    def merged(side: list[int]) -> Summary:
        return answer_windows.merge([by_key[key] for key in side if key in by_key])

    return [merged(stable) for stable, _ in windows], [merged(own) for _, own in windows]
