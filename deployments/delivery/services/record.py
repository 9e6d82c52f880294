"""Record what a pass observed: columns, timeline, state, and the change requests that wait for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from deployments import audit_actions
from deployments.changes.services import transitions
from deployments.delivery.domain import health, refusals
from deployments.delivery.domain.drift import DriftOutcome
from deployments.delivery.domain.health import Health
from deployments.delivery.services import deadlines, events, snapshot, start_deadline
from deployments.delivery.services.snapshot import DeploymentSnapshot, RevisionSnapshot
from deployments.models import ChangeRequest, Deployment, DeploymentEvent, Rollout
from deployments.serving.domain import observed_revision
from deployments.serving.selectors.deployments import OPEN_PHASES
from deployments.serving.services import timeline
from deployments.sizing.domain import kept_peaks
from deployments.sizing.selectors import measurements
from deployments.states import ChangeKind, ChangeState, DeploymentState, RolloutPhase
from fleet.kube.domain.errors import ClusterError, Unreachable
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.models import AuditEvent
from portal.core import clock, columns
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.core.wakeups import wake

logger = logging.getLogger(__name__)

_MOVING_PHASES = (
    RolloutPhase.RUNNING,
    RolloutPhase.PROMOTING,
    RolloutPhase.WATCHING,
    RolloutPhase.ABORTING,
)
# Rows locked by one transaction, for a fraction of a second.
_CHUNK = 25
_COLUMNS = (
    "observed",
    "observed_generation",
    "observed_weight",
    "observed_mirror",
    "observed_at",
    "state",
    "state_reason",
    "first_ready_at",
    "drift",
    "objects_checked_at",
    "objects_checked_generation",
)


def record(snapshots: Sequence[DeploymentSnapshot], leases: Mapping[int, Lease]) -> dict[int, bool]:
    """Record what a pass observed. Returns by deployment whether it is settled.

    Writes nothing for a deployment whose lease was lost, and leaves it out. Updates the rows in `snapshots` to what
    is written.
    """
    settled: dict[int, bool] = {}
    for start in range(0, len(snapshots), _CHUNK):
        chunk = snapshots[start : start + _CHUNK]
        with transaction.atomic():
            recording = _Recording(chunk, leases)
            settled |= {
                shot.deployment.pk: recording.write(shot)
                for shot in chunk
                if recording.holds_lease(shot)
            }
            recording.close()
    return settled


class _Recording:
    """A transaction over several deployments, in which common reads and writes happen once."""

    def __init__(
        self, snapshots: Sequence[DeploymentSnapshot], leases: Mapping[int, Lease]
    ) -> None:
        self._at = clock.now()
        pks = [shot.deployment.pk for shot in snapshots]
        tokens = {leases[pk].token for pk in pks}
        # Ordered, so that two transactions never wait for each other.
        leased = Deployment.objects.filter(pk__in=pks, lease_token__in=tokens).order_by("pk")
        self._leased = set(leased.select_for_update(no_key=True).values_list("pk", flat=True))
        changes = ChangeRequest.objects.order_by().select_related("deployment__team")
        applying = changes.filter(deployment__in=pks, state=ChangeState.APPLYING)
        self._changes = {change.deployment_id: change for change in applying}
        open_rollouts = Rollout.objects.filter(deployment__in=pks, phase__in=OPEN_PHASES)
        opened = list(open_rollouts.order_by().values_list("deployment", "pk", "phase"))
        self._rollouts = {deployment: pk for deployment, pk, _ in opened}
        self._moving = {deployment for deployment, _, phase in opened if phase in _MOVING_PHASES}
        self._written: list[Deployment] = []
        self._reverted: list[int] = []
        self._queued: list[int] = []
        self._lines: list[DeploymentEvent] = []
        self._audit: list[AuditEvent] = []

    def holds_lease(self, shot: DeploymentSnapshot) -> bool:
        return shot.deployment.pk in self._leased

    def write(self, shot: DeploymentSnapshot) -> bool:
        deployment = shot.deployment
        stable = snapshot.observe_revision(shot, deployment.stable_revision)
        candidate = snapshot.observe_revision(shot, deployment.candidate_revision)
        of_baseline = snapshot.observe_revision(shot, deployment.baseline_revision)
        roles = (stable, candidate, of_baseline)
        revisions = [revision for revision in roles if revision is not None]
        change = self._changes.get(deployment.pk)
        facts = replace(
            snapshot.facts_of(shot, stable, candidate, change, self._at),
            start_failure=start_deadline.reason_of(deployment),
            is_settling=deployment.pk in self._moving
            and deadlines.seconds_since_change(deployment, self._at) < health.GRACE_SECONDS,
        )
        verdict = health.assess(facts, now=DeploymentState(deployment.state))
        for revision in revisions:
            self._lines += events.stage_lines(deployment, revision)
            self._lines += events.queue_lines(deployment, revision)
        if any(revision.is_queued for revision in revisions):
            self._queued.append(deployment.pk)
        verdict = self._with_drift(shot, verdict)
        self._note_state(deployment, verdict)
        self._finish_change(deployment, verdict, is_late=facts.is_late)
        if start_deadline.is_due(deployment, facts):
            self._flush_audit()
            start_deadline.give_up(deployment, verdict.reason)
        self._wake_rollout(deployment)
        self._update(deployment, revisions, verdict, candidate)
        if deployment.is_stopped:
            return verdict.state == DeploymentState.STOPPED
        is_ready = verdict.state == DeploymentState.READY and not (
            facts.is_settling and verdict.reason
        )
        are_revisions_ready = all(revision.progress.is_ready for revision in revisions)
        return not deployment.is_retiring and is_ready and are_revisions_ready

    def close(self) -> None:
        columns.write(self._written, _COLUMNS)
        if self._reverted:
            # Not with the other columns: people set it, perhaps at this moment.
            Deployment.objects.filter(pk__in=self._reverted).update(is_revert_requested=False)
        deadlines.postpone(self._queued, self._at)
        DeploymentEvent.objects.bulk_create(self._lines)
        self._flush_audit()

    def _flush_audit(self) -> None:
        trail.append(self._audit)
        self._audit = []

    def _update(
        self,
        deployment: Deployment,
        revisions: Sequence[RevisionSnapshot],
        verdict: Health,
        candidate: RevisionSnapshot | None,
    ) -> None:
        deployment.observed = observed_revision.to_column(
            {revision.revision.number: revision.to_observed(self._at) for revision in revisions}
        )
        deployment.observed_generation = deployment.desired_generation
        deployment.observed_weight = snapshot.observed_percent(
            deployment, candidate.weight if candidate else None
        )
        deployment.observed_mirror = snapshot.observed_percent(
            deployment, candidate.mirror if candidate else None
        )
        deployment.observed_at = self._at
        deployment.state = verdict.state
        deployment.state_reason = verdict.reason
        if verdict.state == DeploymentState.READY and deployment.first_ready_at is None:
            deployment.first_ready_at = self._at
        self._written.append(deployment)

    def _with_drift(self, shot: DeploymentSnapshot, verdict: Health) -> Health:
        """Record drift and pruned objects; add pending drift and bucket problems to the reason."""
        deployment, report = shot.deployment, shot.drift_report
        for kind, message in events.drift_messages(report):
            self._lines.append(
                timeline.line(deployment=deployment, kind=kind, message=message, actor=SYSTEM)
            )
        if report.drift.outcome == DriftOutcome.REVERTED and deployment.is_revert_requested:
            self._reverted.append(deployment.pk)
        deployment.drift = report.drift.to_json()
        if report.is_checked:
            deployment.objects_checked_at = self._at
            deployment.objects_checked_generation = deployment.desired_generation
        reasons = list(filter(None, (verdict.reason, report.drift.reason, shot.policy_refusal)))
        problem = deployment.bytes_problem
        if problem and problem not in verdict.reason:
            reasons.append(problem)
        return Health(verdict.state, "; ".join(reasons))

    def _note_state(self, deployment: Deployment, verdict: Health) -> None:
        if verdict.state == deployment.state:
            return
        message = f"{verdict.state}: {verdict.reason}" if verdict.reason else str(verdict.state)
        self._lines.append(
            timeline.line(deployment=deployment, kind="state", message=message, actor=SYSTEM)
        )
        self._audit.append(events.state_event(deployment, verdict.state, verdict.reason))

    def _finish_change(self, deployment: Deployment, verdict: Health, *, is_late: bool) -> None:
        change = self._changes.get(deployment.pk)
        if change is None:
            return
        # Earlier events first: the transition writes its own.
        self._flush_audit()
        try:
            if _is_done(change, deployment, verdict):
                transitions.move(
                    actor=SYSTEM,
                    change=change,
                    to=ChangeState.DONE,
                    action=audit_actions.CHANGE_DONE,
                )
            elif is_late:
                deadlines.end_late(change, verdict.reason)
        except Conflict:
            # Someone moved it meanwhile; its new state decides what is next.
            logger.info("change=%s moved meanwhile", change.pk)

    def _wake_rollout(self, deployment: Deployment) -> None:
        """Wake an open rollout, which may be waiting for what was just recorded."""
        if deployment.pk in self._rollouts:
            wake("deployments.advance_rollout", self._rollouts[deployment.pk])


def _is_done(change: ChangeRequest, deployment: Deployment, verdict: Health) -> bool:
    if change.kind == ChangeKind.SCALE and deployment.scale != change.scale:
        # The pass started before the request was applied.
        return False
    if change.kind == ChangeKind.STOP:
        return deployment.is_stopped and verdict.state == DeploymentState.STOPPED
    return change.kind in deadlines.UNTIL_READY and verdict.state == DeploymentState.READY


def record_failure(deployment_id: int, error: ClusterError) -> None:
    """Keep the last observed state; the reason says why it may be outdated."""
    deployment = Deployment.objects.select_related("team").filter(pk=deployment_id).first()
    if deployment is None:
        return
    reason = refusals.describe_failure(error)
    is_new = not deployment.state_reason.startswith(reason.partition(":")[0])
    with transaction.atomic():
        if deployment.state_reason != reason:
            Deployment.objects.filter(pk=deployment_id).update(state_reason=reason)
        if is_new:
            kind = "unreachable" if isinstance(error, Unreachable) else "refused"
            timeline.note(deployment=deployment, kind=kind, message=reason, actor=SYSTEM)
        if deadlines.is_late(deployment, clock.now()):
            change = deadlines.applying(deployment)
            if change is not None:
                deadlines.end_late(change, reason)


def record_retired(deployment: Deployment, lease: Lease) -> None:
    at = clock.now()
    with transaction.atomic():
        revisions = list(deployment.revisions.select_related("deployment"))
        peaks = measurements.peaks_of(revisions)
        written = Deployment.objects.filter(
            pk=deployment.pk, lease_token=lease.token, is_retired=False
        ).update(
            is_retired=True,
            state=DeploymentState.RETIRED,
            state_reason="",
            # A workload's row has one peak, and a later deployment may get its name.
            observed=kept_peaks.to_column(
                {row.number: peaks[row.pk] for row in revisions if row.pk in peaks}
            ),
            observed_weight=None,
            observed_mirror=None,
            observed_generation=deployment.desired_generation,
            observed_at=at,
        )
        if written == 0:
            return
        timeline.note(
            deployment=deployment,
            kind="retired",
            message="everything was removed from the cluster",
            actor=SYSTEM,
        )
        trail.append(
            [events.state_event(deployment, DeploymentState.RETIRED, "everything was removed")]
        )
        change = deadlines.applying(deployment)
        if change is not None and change.kind == ChangeKind.RETIRE:
            transitions.move(
                actor=SYSTEM, change=change, to=ChangeState.DONE, action=audit_actions.CHANGE_DONE
            )
