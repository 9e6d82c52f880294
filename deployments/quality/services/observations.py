"""Observations that a service posts of its model's answers. They are summed up at once, a row per revision and
minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from deployments import rejections
from deployments.guards.domain.answers import answer_metrics, two_sample_tests
from deployments.guards.domain.answers.answer_metrics import AnswerKind, Summary
from deployments.models import Deployment, EmbeddingReference, QualityObservation, Revision
from deployments.serving.selectors import deployments, statistics
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Invalid

# So many embeddings, the first of a revision, are the reference set of what comes later.
REFERENCE_SIZE: Final = 64
_KEPT: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Posted:
    """The stored observation. `reference_n` is how many of the values went into the revision's reference set."""

    revision_number: int
    kind: AnswerKind
    n: int
    reference_n: int = 0


def post(
    *, actor: User, deployment_id: int, revision_number: int, kind: AnswerKind, values: object
) -> Posted:
    """Store posted values. Raises Invalid for values that are not of the kind, and for revisions that do not
    serve.
    """
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    revision = _serving(deployment, revision_number)
    with rejections.as_invalid():
        if kind == AnswerKind.EMBEDDINGS:
            vectors = answer_metrics.unit_vectors(values)
            return _post_vectors(actor, deployment, revision, vectors)
        summary = answer_metrics.sum_up(kind, values)
    with transaction.atomic():
        _add(actor, revision, kind, summary)
    return Posted(revision.number, kind, summary.n)


def _serving(deployment: Deployment, number: int) -> Revision:
    for revision in statistics.desired_revisions(deployment):
        if revision is not None and revision.number == number:
            return revision
    raise Invalid(
        f"r{number} of {deployment} is not serving.", fields={"revision": "not serving now"}
    )


def _post_vectors(
    actor: User, deployment: Deployment, revision: Revision, vectors: list[list[float]]
) -> Posted:
    """Store embeddings. The first ones of a revision become its reference set. All others, and all of a
    candidate, are compared with the reference set of the stable revision.
    """
    size = len(vectors[0])
    stable = deployment.stable_revision or revision
    with transaction.atomic():
        reference = _reference_of(stable)
        _check_size(reference, size)
        taken = _fill(_reference_of(revision), vectors)
        later = vectors[taken:] if revision.pk == stable.pk else vectors
        reference.refresh_from_db()
        if later and reference.captured_at is not None:
            counts = answer_metrics.distances(later, reference.total)
            summary = Summary(len(later), counts, answer_metrics.sum_vectors(later, size))
            _add(actor, revision, AnswerKind.EMBEDDINGS, summary)
    return Posted(revision.number, AnswerKind.EMBEDDINGS, len(vectors), taken)


def _reference_of(revision: Revision) -> EmbeddingReference:
    EmbeddingReference.objects.get_or_create(revision=revision)
    return EmbeddingReference.objects.select_for_update().get(revision=revision)


def _check_size(reference: EmbeddingReference, size: int) -> None:
    if reference.n and len(reference.total) != size:
        message = (
            f"The embeddings have {size} dimensions, those of the stable revision "
            f"{len(reference.total)}."
        )
        raise Invalid(f"{message} They cannot be compared.", fields={"values": message})


def _fill(reference: EmbeddingReference, vectors: Sequence[Sequence[float]]) -> int:
    taken = vectors[: max(0, REFERENCE_SIZE - reference.n)]
    if not taken:
        return 0
    _check_size(reference, len(taken[0]))
    old = reference.total or [0.0] * len(taken[0])
    reference.total = list(answer_metrics.sum_vectors([old, *taken], len(old)))
    reference.n += len(taken)
    if reference.n >= REFERENCE_SIZE:
        reference.captured_at = clock.now()
    reference.save(update_fields=["n", "total", "captured_at"])
    return len(taken)


def _add(actor: User, revision: Revision, kind: AnswerKind, summary: Summary) -> None:
    """Add to the row of this minute, so that a busy service makes few rows. Call inside a
    transaction.
    """
    at = clock.now()
    mine = QualityObservation.objects.filter(revision=revision, kind=kind)
    mine.filter(at__lt=at - _KEPT).delete()
    minute = mine.filter(at__gte=at - timedelta(seconds=60)).select_for_update()
    row = minute.order_by("-id").first()
    if row is None:
        QualityObservation.objects.create(
            revision=revision, kind=kind, posted_by=actor, at=at, **_columns(summary)
        )
        return
    merged = Summary(
        n=row.n + summary.n,
        counts=two_sample_tests.add([row.counts, summary.counts]),
        total=_sum(row.total, summary.total),
    )
    QualityObservation.objects.filter(pk=row.pk).update(**_columns(merged))


def _columns(summary: Summary) -> Mapping[str, Any]:
    return {"n": summary.n, "counts": dict(summary.counts), "total": list(summary.total)}


def _sum(first: Sequence[float], second: Sequence[float]) -> tuple[float, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))
