"""The state of a candidate's answers: before it gets traffic, and at each analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Max, QuerySet

from deployments.guards.domain.answers import answer_verdicts
from deployments.guards.domain.answers.answer_metrics import QualityMetric
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.models import (
    GoldenRequest,
    GoldenResult,
    GoldenRun,
    Model,
    ModelVersion,
    Rollout,
)
from deployments.quality.domain.output_comparison import Difference, differences_of
from deployments.quality.selectors import answers
from deployments.registry.domain import signatures
from deployments.registry.domain.signatures import Signature
from deployments.states import ChangeKind, ProbePurpose, ProbeVerdict, VersionState
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound
from portal.core.single_row import find_one

_VERDICTS: Final[Mapping[str, Verdict]] = {
    ProbeVerdict.WAITING: Verdict.NOT_ENOUGH,
    ProbeVerdict.PASSED: Verdict.PASSED,
    ProbeVerdict.FAILED: Verdict.FAILED,
}


@dataclass(frozen=True, slots=True)
class BeforeTrafficRow:
    """A golden request as the candidate answered it. `against_stable` is empty while the stable revision has
    not answered, and `stable_message` says why.
    """

    name: str
    number: int
    verdict: Verdict
    message: str
    against_expected: tuple[Difference, ...]
    against_stable: tuple[Difference, ...]
    stable_message: str
    checked_at: datetime | None


@dataclass(frozen=True, slots=True)
class BeforeTraffic:
    """The answers to golden requests before traffic. NOT_ENOUGH waits: the candidate has not answered yet.
    FAILED aborts the rollout.
    """

    verdict: Verdict
    message: str
    rows: tuple[BeforeTrafficRow, ...] = ()
    signature_verdict: Verdict = Verdict.NOT_ENOUGH
    signature_message: str = ""
    checked_at: datetime | None = None


def golden_requests_of(model: Model) -> QuerySet[GoldenRequest]:
    """Return the current golden requests of a model, by name."""
    rows = GoldenRequest.objects.filter(model=model, retired_at=None)
    return rows.select_related("model__team", "version", "created_by").order_by("name")


def list_by_ids(keys: Sequence[int]) -> list[GoldenRequest]:
    """Return golden requests by name, including those deleted since."""
    return list(GoldenRequest.objects.filter(pk__in=keys).order_by("name"))


def signature_of(model: Model) -> Signature:
    """Return the signature of the newest version that may be deployed. Empty without one."""
    rows = ModelVersion.objects.filter(model=model, state=VersionState.READY)
    newest = rows.order_by("-number").first()
    return signatures.from_json(newest.signature if newest else {})


def last_results(rows: Sequence[GoldenRequest]) -> dict[int, GoldenResult]:
    """Return the last result of each golden request, before traffic or as a probe."""
    answered = GoldenResult.objects.filter(golden__in=rows, checked_at__isnull=False)
    newest = answered.order_by().values("golden").annotate(newest=Max("id"))
    results = GoldenResult.objects.filter(pk__in=newest.values("newest"))
    related = results.select_related("run__rollout__candidate_revision__version__model")
    return {result.golden_id: result for result in related}


def get_golden_request(*, actor: Actor, golden_id: int) -> GoldenRequest:
    rows = GoldenRequest.objects.filter(model__team__in=policy.visible_teams(actor))
    golden = (
        rows.select_related("model__team", "version", "created_by").filter(pk=golden_id).first()
    )
    if golden is None:
        raise NotFound(f"Golden request {golden_id} does not exist, or you are not in its team.")
    return golden


def before_traffic(*, rollout: Rollout) -> BeforeTraffic:
    """Whether the candidate's answers allow it to get user requests."""
    run = find_one(GoldenRun.objects.filter(rollout=rollout, purpose=ProbePurpose.BEFORE_TRAFFIC))
    if run is not None:
        return BeforeTraffic(
            verdict=_VERDICTS[run.verdict],
            message=run.message or "golden requests are running on the candidate",
            rows=_rows_of(run),
            signature_verdict=_VERDICTS[run.signature_verdict],
            signature_message=run.signature_message,
            checked_at=run.checked_at,
        )
    if rollout.change.kind == ChangeKind.ROLL_BACK:
        # It served before; going back must not wait for answers of what is being left.
        return BeforeTraffic(Verdict.PASSED, "a rollback skips golden requests")
    if not rollout.golden:
        return BeforeTraffic(Verdict.PASSED, "approved without golden requests")
    return BeforeTraffic(Verdict.NOT_ENOUGH, "golden requests run once the candidate is ready")


def guards_for(
    *, rollout: Rollout, limits: Mapping[QualityMetric, float | None]
) -> tuple[GuardResult, ...]:
    """Return the results of the guards on answers at a running step. Empty where there is no data."""
    run = find_one(GoldenRun.objects.filter(rollout=rollout, purpose=ProbePurpose.PROBE))
    disagreement = limits["disagreement"]
    results = [] if run is None else [_golden_guard(run)]
    if run is not None and disagreement is not None:
        results.append(_disagreement_guard(run, disagreement))
    posted = answers.posted_kinds(rollout)
    for kind, metric in answer_verdicts.LIMIT_OF.items():
        limit = limits[metric]
        if kind in posted and limit is not None:
            stable, candidate = answers.windows_of(rollout, kind)
            results.append(
                answer_verdicts.judge(kind, stable=stable, candidate=candidate, limit=limit)
            )
    return tuple(results)


def _disagreement_guard(run: GoldenRun, limit: float) -> GuardResult:
    results = (differences_of(row.against_stable) for row in run.results.all())
    answered = [differences for differences in results if differences]
    wrong = sum(
        not all(difference.is_within for difference in differences) for differences in answered
    )
    return answer_verdicts.judge_disagreement(wrong=wrong, answered=len(answered), limit=limit)


def _golden_guard(run: GoldenRun) -> GuardResult:
    verdicts = list(run.results.values_list("verdict", flat=True))
    good = verdicts.count(ProbeVerdict.PASSED)
    return GuardResult(
        guard="Golden answers",
        stable="",
        candidate=f"{good} of {len(verdicts)} within tolerance",
        limit="all",
        n=len(verdicts) * run.rounds,
        verdict=_VERDICTS[run.verdict],
        message=run.message or "golden requests have not run at this step yet",
        source="golden requests",
    )


def _rows_of(run: GoldenRun) -> tuple[BeforeTrafficRow, ...]:
    rows = GoldenResult.objects.filter(run=run).select_related("golden").order_by("golden__name")
    return tuple(
        BeforeTrafficRow(
            name=row.golden.name,
            number=row.golden.number,
            verdict=_VERDICTS[row.verdict],
            message=row.message,
            against_expected=differences_of(row.against_expected),
            against_stable=differences_of(row.against_stable),
            stable_message=row.stable_message,
            checked_at=row.checked_at,
        )
        for row in rows
    )
