"""Write down what was observed: columns, timeline, state, and what waits for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from deployments import audit_actions
from deployments.changes.services import transitions
from deployments.delivery.domain import drift as delivery_drift
from deployments.delivery.domain import health
from deployments.delivery.domain.drift import Outcome
from deployments.delivery.services import deadlines, events, snapshot, start_deadline
from deployments.delivery.services.snapshot import Look, Seen
from deployments.models import ChangeRequest, Deployment, DeploymentEvent, Rollout
from deployments.serving.selectors.deployments import OPEN_PHASES
from deployments.serving.services import timeline
from deployments.states import ChangeKind, ChangeState, DeploymentState
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.models import AuditEvent
from portal.core import clock, columns
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.core.wakeups import wake

logger = logging.getLogger(__name__)

# Rows of so many deployments are locked together, for a part of a second.
_AT_ONCE = 25
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
_SILENT = "Not known: the cluster does not answer"


def record(looks: Sequence[Look], held: Mapping[int, Lease]) -> dict[int, bool]:
    """By deployment, whether nothing is awaited of it any more. Writes nothing of one whose lease
    was lost, and leaves it out. The rows in `looks` are changed to what is written.
    """
    settled: dict[int, bool] = {}
    for start in range(0, len(looks), _AT_ONCE):
        some = looks[start : start + _AT_ONCE]
        with transaction.atomic():
            page = _Page(some, held)
            settled |= {look.deployment.pk: page.write(look) for look in some if page.is_held(look)}
            page.close()
    return settled


class _Page:
    """One transaction. What many deployments need is read once and written once."""

    def __init__(self, looks: Sequence[Look], held: Mapping[int, Lease]) -> None:
        self._at = clock.now()
        pks = [look.deployment.pk for look in looks]
        tokens = {held[pk].token for pk in pks}
        # Ordered, so that two transactions never wait for each other.
        mine = Deployment.objects.filter(pk__in=pks, lease_token__in=tokens).order_by("pk")
        self._held = set(mine.select_for_update(no_key=True).values_list("pk", flat=True))
        rows = ChangeRequest.objects.select_related("deployment__team")
        open_changes = rows.filter(deployment__in=pks, state=ChangeState.APPLYING)
        self._changes = {change.deployment_id: change for change in open_changes}
        rollouts = Rollout.objects.filter(deployment__in=pks, phase__in=OPEN_PHASES)
        self._rollouts = dict(rollouts.values_list("deployment_id", "pk"))
        self._written: list[Deployment] = []
        self._healed: list[int] = []
        self._lines: list[DeploymentEvent] = []
        self._audit: list[AuditEvent] = []

    def is_held(self, look: Look) -> bool:
        return look.deployment.pk in self._held

    def write(self, look: Look) -> bool:
        deployment = look.deployment
        stable = snapshot.see(look, deployment.stable_revision)
        candidate = snapshot.see(look, deployment.candidate_revision)
        shown = [one for one in (stable, candidate) if one is not None]
        change = self._changes.get(deployment.pk)
        facts = replace(
            snapshot.facts(look, stable, candidate, change, self._at),
            given_up=start_deadline.reason_of(deployment),
        )
        found = health.assess(facts, now=DeploymentState(deployment.state))
        for one in shown:
            self._lines += events.stage_lines(deployment, one)
        found = self._with_drift(look, found)
        self._note_state(deployment, found)
        self._settle(deployment, found, is_late=facts.is_late)
        if start_deadline.is_due(deployment, facts):
            self._flush_audit()
            start_deadline.give_up(deployment, found.reason)
        self._tell_rollout(deployment)
        self._update(deployment, shown, found, candidate)
        if deployment.is_stopped:
            return found.state == DeploymentState.STOPPED
        is_ready = found.state == DeploymentState.READY
        return (
            not deployment.is_retiring and is_ready and all(one.progress.is_ready for one in shown)
        )

    def close(self) -> None:
        columns.write(self._written, _COLUMNS)
        if self._healed:
            # Not with the other columns: only people set it, perhaps at this moment.
            Deployment.objects.filter(pk__in=self._healed).update(is_heal_wanted=False)
        DeploymentEvent.objects.bulk_create(self._lines)
        self._flush_audit()

    def _flush_audit(self) -> None:
        trail.append(self._audit)
        self._audit = []

    def _update(
        self,
        deployment: Deployment,
        shown: Sequence[Seen],
        found: health.Health,
        candidate: Seen | None,
    ) -> None:
        deployment.observed = {f"r{one.revision.number}": one.to_json(self._at) for one in shown}
        deployment.observed_generation = deployment.desired_generation
        deployment.observed_weight = snapshot.share(
            deployment, candidate.weight if candidate else None
        )
        deployment.observed_mirror = snapshot.share(
            deployment, candidate.mirror if candidate else None
        )
        deployment.observed_at = self._at
        deployment.state = found.state
        deployment.state_reason = found.reason
        if found.state == DeploymentState.READY and deployment.first_ready_at is None:
            deployment.first_ready_at = self._at
        self._written.append(deployment)

    def _with_drift(self, look: Look, found: health.Health) -> health.Health:
        """Writes down what others changed and what was removed; what is left so is in the reason."""
        deployment, drift = look.deployment, look.found.drift
        for kind, words in events.told(delivery_drift.from_json(deployment.drift), look.found):
            self._lines.append(
                timeline.line(deployment=deployment, kind=kind, message=words, actor=SYSTEM)
            )
        if drift.outcome == Outcome.HEALED and deployment.is_heal_wanted:
            self._healed.append(deployment.pk)
        deployment.drift = drift.to_json()
        if look.found.is_checked:
            deployment.objects_checked_at = self._at
            deployment.objects_checked_generation = deployment.desired_generation
        reasons = [text for text in (found.reason, drift.reason) if text]
        problem = deployment.bytes_problem
        if problem and problem not in found.reason:
            reasons.append(problem)
        return health.Health(found.state, "; ".join(reasons))

    def _note_state(self, deployment: Deployment, found: health.Health) -> None:
        if found.state == deployment.state:
            return
        words = f"{found.state}: {found.reason}" if found.reason else str(found.state)
        self._lines.append(
            timeline.line(deployment=deployment, kind="state", message=words, actor=SYSTEM)
        )
        self._audit.append(events.state_event(deployment, found.state, found.reason))

    def _settle(self, deployment: Deployment, found: health.Health, *, is_late: bool) -> None:
        change = self._changes.get(deployment.pk)
        if change is None:
            return
        # Before what the move itself writes, in the order in which it came about.
        self._flush_audit()
        try:
            if _is_done(change, deployment, found):
                transitions.move(
                    actor=SYSTEM,
                    change=change,
                    to=ChangeState.DONE,
                    action=audit_actions.CHANGE_DONE,
                )
            elif is_late:
                deadlines.end_late(change, found.reason)
        except Conflict:
            # Someone moved it meanwhile; the row says what is next.
            logger.info("change=%s moved meanwhile", change.pk)

    def _tell_rollout(self, deployment: Deployment) -> None:
        """The rollout looks at what was just written; only if it waits for anything."""
        if deployment.pk in self._rollouts:
            wake("deployments.advance_rollout", self._rollouts[deployment.pk])


def _is_done(change: ChangeRequest, deployment: Deployment, found: health.Health) -> bool:
    if change.kind == ChangeKind.SCALE and deployment.scale != change.scale:
        # Looked at before the request began.
        return False
    if change.kind == ChangeKind.STOP:
        return deployment.is_stopped and found.state == DeploymentState.STOPPED
    return change.kind in deadlines.UNTIL_READY and found.state == DeploymentState.READY


def record_silence(deployment_id: int, words: str) -> None:
    """The state stays what was seen last; the reason says that it may no longer be so."""
    deployment = Deployment.objects.select_related("team").filter(pk=deployment_id).first()
    if deployment is None:
        return
    reason = f"{_SILENT} ({words})."
    with transaction.atomic():
        if deployment.state_reason != reason:
            Deployment.objects.filter(pk=deployment_id).update(state_reason=reason)
        if not deployment.state_reason.startswith(_SILENT):
            timeline.note(deployment=deployment, kind="unreachable", message=reason, actor=SYSTEM)
        if deadlines.is_late(deployment, clock.now()):
            change = deadlines.applying(deployment)
            if change is not None:
                deadlines.end_late(change, reason)


def record_retired(deployment: Deployment, lease: Lease) -> None:
    at = clock.now()
    with transaction.atomic():
        written = Deployment.objects.filter(
            pk=deployment.pk, lease_token=lease.token, is_retired=False
        ).update(
            is_retired=True,
            state=DeploymentState.RETIRED,
            state_reason="",
            observed={},
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
