"""Send the golden requests of a rollout to its candidate, and to stable beside it.

Before traffic: begun when the candidate is ready; its verdict stays. While a step runs: the same
requests again and again, as probes. Each answer is a row of its own, written when it came, so a
crash costs at most one request, which is sent again: inference requests have no side effects.
A candidate that does not respond is "not known": the run waits and says so, and never passes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction

from deployments.models import GoldenResult, GoldenRun, Revision, Rollout
from deployments.quality.domain import golden_requests, output_comparison
from deployments.quality.domain.output_comparison import BadOutputs, Output
from deployments.registry.domain import signatures
from deployments.registry.domain.signatures import Signature
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.services import pod_inference
from deployments.serving.services.pod_inference import NotAnswered
from deployments.states import JUDGED_PHASES, ChangeKind, ProbePurpose, ProbeVerdict, RolloutPhase
from fleet.kube.domain.pod_proxy import PodResponse
from portal.core import clock, leases
from portal.core.leases import Lease
from portal.core.wakeups import wake

PROBE_SECONDS: Final = 30.0
_LEASE_SECONDS: Final = 60.0
# For one pass; the remaining requests are sent in the next.
_WORK_SECONDS: Final = 40.0
_STABLE_ATTEMPTS: Final = 3
# Consecutive passes without a response from the candidate before a probe becomes "not known".
_MOST_UNANSWERED: Final = 3
_PREPARING: Final = (RolloutPhase.PREPARING, RolloutPhase.PAUSED)
_RELATED: Final = (
    "rollout__change",
    "rollout__deployment__team",
    "rollout__deployment__cluster",
    "rollout__stable_revision__deployment",
    "rollout__stable_revision__version__model__team",
    "rollout__candidate_revision__deployment",
    "rollout__candidate_revision__version__model__team",
)


def has_work() -> bool:
    """Whether a sweep may find something to do."""
    # Few rollouts are under way at a time, so that their phase says enough.
    under_way = Rollout.objects.filter(phase__in=(*_PREPARING, RolloutPhase.RUNNING))
    return under_way.exists() or leases.has_due(GoldenRun)


def sweep(*, limit: int = 20) -> int:
    begin_due()
    due = leases.due(GoldenRun, limit=limit)
    for run_id in due:
        advance(run_id=run_id)
    return len(due)


def begin_due() -> None:
    """Create the runs of rollouts whose candidate is ready, and of those at a running step."""
    rows = Rollout.objects.select_related("deployment", "change", "candidate_revision__version")
    no_run = rows.exclude(golden_runs__purpose=ProbePurpose.BEFORE_TRAFFIC)
    waiting = no_run.filter(
        phase__in=_PREPARING, deployment__candidate_weight=0, deployment__candidate_mirror=0
    )
    for rollout in waiting.exclude(change__kind=ChangeKind.ROLL_BACK):
        if _is_ready(rollout):
            _begin(rollout, ProbePurpose.BEFORE_TRAFFIC, rollout.golden)
    passed = rows.filter(
        golden_runs__purpose=ProbePurpose.BEFORE_TRAFFIC, golden_runs__verdict=ProbeVerdict.PASSED
    )
    running = passed.filter(phase=RolloutPhase.RUNNING).exclude(steps=[])
    for rollout in running.exclude(golden_runs__purpose=ProbePurpose.PROBE):
        _begin(rollout, ProbePurpose.PROBE, rollout.golden)


def advance(*, run_id: int) -> None:
    """Send the due requests of one run; does nothing when another worker holds the lease."""
    lease = leases.claim(GoldenRun, run_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    run = GoldenRun.objects.select_related(*_RELATED).get(pk=run_id)
    if not _is_needed(run):
        leases.release(GoldenRun, lease, next_check_at=None)
        return
    problem = _send_due(run, lease)
    if not leases.is_held(GoldenRun, lease):
        return
    if problem:
        _record_no_response(run, problem)
        leases.back_off(GoldenRun, lease, cap_seconds=30)
        return
    is_done = _conclude(run)
    is_over = is_done and run.purpose == ProbePurpose.BEFORE_TRAFFIC
    wait = timedelta(seconds=PROBE_SECONDS if is_done else 0)
    leases.release(GoldenRun, lease, next_check_at=None if is_over else clock.now() + wait)


def _is_ready(rollout: Rollout) -> bool:
    deployment = rollout.deployment
    observed = ObservedRevision.from_column(deployment.observed, rollout.candidate_revision.number)
    is_candidate = deployment.candidate_revision_id == rollout.candidate_revision_id
    is_current = deployment_selectors.is_current(deployment)
    return is_candidate and is_current and observed.is_ready is True


def _begin(rollout: Rollout, purpose: ProbePurpose, golden_ids: Sequence[int]) -> None:
    """Create a run with exactly the approved golden requests, including those deleted since. If a
    row is missing, none is sent, and the rollout waits until its deadline.
    """
    if not golden_ids:
        return
    at = clock.now()
    try:
        with transaction.atomic():
            run = GoldenRun.objects.create(
                rollout=rollout, purpose=purpose, created_at=at, next_check_at=at
            )
            rows = [GoldenResult(run=run, golden_id=golden_id) for golden_id in golden_ids]
            GoldenResult.objects.bulk_create(rows)
    except IntegrityError:
        # Another worker made it a moment ago.
        return


def _is_needed(run: GoldenRun) -> bool:
    if run.purpose == ProbePurpose.PROBE:
        # Also while the route moves to all requests: probes go on during the watch.
        return run.rollout.phase in (*JUDGED_PHASES, RolloutPhase.PROMOTING)
    return run.verdict == ProbeVerdict.WAITING and run.rollout.phase in _PREPARING


def _send_due(run: GoldenRun, lease: Lease) -> str:
    """Send the requests that are due and return why the candidate did not respond. Empty when it answered every
    request of this pass.
    """
    until = clock.now() + timedelta(seconds=_WORK_SECONDS)
    try:
        _check_signature(run)
        for row in _due_results(run):
            if (
                clock.now() > until
                or leases.renew(GoldenRun, lease, seconds=_LEASE_SECONDS) is None
            ):
                return ""
            _send(run, row)
    except NotAnswered as error:
        return str(error)
    return ""


def _due_results(run: GoldenRun) -> list[GoldenResult]:
    """Return results that are not answered yet, for a probe in this round, which began when the last ended."""
    rows = list(run.results.select_related("golden").order_by("golden__name"))
    if run.purpose == ProbePurpose.BEFORE_TRAFFIC:
        return [row for row in rows if row.verdict == ProbeVerdict.WAITING]
    last = run.checked_at
    return [row for row in rows if row.checked_at is None or (last and row.checked_at <= last)]


def _check_signature(run: GoldenRun) -> None:
    if run.signature_verdict != ProbeVerdict.WAITING:
        return
    candidate = run.rollout.candidate_revision
    signature = signatures.from_json(candidate.version.signature)
    problem = golden_requests.signature_problem(signature, pod_inference.reported_model(candidate))
    run.signature_verdict = ProbeVerdict.FAILED if problem else ProbeVerdict.PASSED
    run.signature_message = problem or _describe_match(signature)
    GoldenRun.objects.filter(pk=run.pk, signature_verdict=ProbeVerdict.WAITING).update(
        signature_verdict=run.signature_verdict, signature_message=run.signature_message
    )


def _describe_match(signature: Signature) -> str:
    if not signature.inputs:
        return "no signature in the file to compare with"
    return "inputs and outputs match the file"


def _send(run: GoldenRun, row: GoldenResult) -> None:
    """Send one golden request and store the result. Raises NotAnswered when the candidate does not respond, or
    stable does not yet.
    """
    request = row.golden.request
    GoldenResult.objects.filter(pk=row.pk).update(attempts=row.attempts + 1)
    got, refusal = _read(pod_inference.infer(run.rollout.candidate_revision, request))
    expected = golden_requests.read_expected(row.golden.expected)
    allowed = golden_requests.tolerances_of(row.golden.tolerances)
    differences = output_comparison.compare(expected, got, allowed)
    stable, stable_message = _stable_answer(run.rollout.stable_revision, row)
    message = refusal or next(
        (
            f"{difference.output}: {difference.mismatch}"
            for difference in differences
            if not difference.is_within
        ),
        "",
    )
    beside = output_comparison.compare(stable, got, allowed) if stable and got else ()
    GoldenResult.objects.filter(pk=row.pk).update(
        verdict=ProbeVerdict.FAILED if message else ProbeVerdict.PASSED,
        message=message or "within tolerance",
        against_expected=[difference.to_json() for difference in differences] if got else [],
        against_stable=[difference.to_json() for difference in beside],
        stable_message=stable_message,
        checked_at=clock.now(),
    )


def _stable_answer(stable: Revision, row: GoldenResult) -> tuple[Sequence[Output], str]:
    """Read stable's answer, for the comparison only. After a few attempts the run continues without it."""
    try:
        return _read(pod_inference.infer(stable, row.golden.request))
    except NotAnswered as error:
        if row.attempts + 1 < _STABLE_ATTEMPTS:
            raise NotAnswered(f"stable did not respond: {error}") from error
        return (), f"stable did not respond: {error}"


def _read(answer: PodResponse) -> tuple[Sequence[Output], str]:
    """Return the outputs, or why there are none."""
    if answer.is_cut:
        return (), "the response is larger than 2 MB"
    try:
        body: Any = json.loads(answer.body)
    except (ValueError, RecursionError):
        return (), f"the model returned HTTP {answer.status} with invalid JSON"
    if answer.status >= 400:
        said = body.get("error", "") if isinstance(body, dict) else ""
        return (), f"the model returned HTTP {answer.status}: {str(said)[:300] or 'no reason'}"
    try:
        return output_comparison.read(body), ""
    except BadOutputs as error:
        return (), f"the response is not valid: {error}"


def _record_no_response(run: GoldenRun, problem: str) -> None:
    message = f"unknown: the candidate did not respond to golden requests: {problem}"
    fields: dict[str, Any] = {"message": message}
    if run.check_failures + 1 >= _MOST_UNANSWERED:
        # The result of an old probe says nothing about the present.
        fields["verdict"] = ProbeVerdict.WAITING
    GoldenRun.objects.filter(pk=run.pk, verdict=run.verdict).update(**fields)
    _wake_rollout(run.rollout_id)


def _conclude(run: GoldenRun) -> bool:
    """Store the verdict once all have answered, and requeue the rollout at once."""
    if _due_results(run):
        return False
    rows = list(run.results.select_related("golden").order_by("golden__name"))
    wrong = [row for row in rows if row.verdict == ProbeVerdict.FAILED]
    verdict, message = (
        ProbeVerdict.PASSED,
        f"{len(rows)} of {len(rows)} golden requests passed",
    )
    if run.signature_verdict == ProbeVerdict.FAILED:
        verdict, message = ProbeVerdict.FAILED, f"signature: {run.signature_message}"
    elif wrong:
        first = wrong[0]
        verdict = ProbeVerdict.FAILED
        message = (
            f"{len(wrong)} of {len(rows)} golden requests failed: {first.golden.name}: "
            f"{first.message}"
        )
    GoldenRun.objects.filter(pk=run.pk, verdict=run.verdict).update(
        verdict=verdict, message=message, checked_at=clock.now(), rounds=run.rounds + 1
    )
    _wake_rollout(run.rollout_id)
    return True


def _wake_rollout(rollout_id: int) -> None:
    leases.nudge(Rollout, rollout_id)
    wake("deployments.advance_rollout", rollout_id)
