"""The movement of traffic from the stable revision to the candidate, in steps."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.changes import ChangeRequest
from deployments.models.deployments import Deployment, Revision
from deployments.states import RolloutPhase
from portal.accounts.models import Team
from portal.core.leases import Leased


class Rollout(Leased):
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="rollouts")
    change = models.OneToOneField(ChangeRequest, on_delete=models.PROTECT, related_name="rollout")
    stable_revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    candidate_revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    # What the candidate is compared with instead of all of stable; null without a baseline, and before
    # it is made.
    baseline_revision = models.ForeignKey(
        Revision, on_delete=models.PROTECT, null=True, related_name="+"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    # As approved: deployments.plans.domain.rollout_plan.RolloutPlan, in two columns.
    steps = models.JSONField()
    plan = models.JSONField(default=dict)
    # Keys of golden requests. They are sent even if someone deletes them from the model meanwhile.
    golden = models.JSONField(default=list)
    phase = models.CharField(max_length=10, choices=[(p.value, p.value) for p in RolloutPhase])
    phase_reason = models.TextField(blank=True, default="")
    step_index = models.PositiveSmallIntegerField(default=0)
    step_started_at = models.DateTimeField(null=True)
    # The step that was decided on and waits for the candidate's replicas; one past the last: all requests.
    promoted_to = models.PositiveSmallIntegerField(null=True)
    # deployments.rollouts.domain.step_observation.StepObservation, of the present step.
    observed = models.JSONField(default=dict)
    # deployments.rollouts.services.counter_readings.CounterReadings.
    tests = models.JSONField(default=dict)
    # deployments.guards.domain.reference.Reference; empty while stable gets requests.
    reference = models.JSONField(default=dict)
    # Last analysis: deployments.guards.domain.evidence.GuardResult, a list.
    evidence = models.JSONField(default=list)
    evidence_hash = models.CharField(max_length=64, blank=True, default="")
    # deployments.serving.domain.alias_moves.AliasMove, a list: what its end moved.
    alias_moves = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )
    evidence_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    # When the present phase must have ended; set with each phase.
    deadline_at = models.DateTimeField()
    # Since when the route sends no requests to the revision that is to be removed.
    drain_started_at = models.DateTimeField(null=True)
    # While it is watched after promotion; a person may end it earlier.
    watch_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["deployment"],
                condition=~models.Q(phase__in=["completed", "aborted"]),
                name="one_rollout_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"rollout {self.pk} of {self.deployment_id}"

    @property
    def team(self) -> Team:
        return self.deployment.team

    @property
    def compared_revision(self) -> Revision:
        """The pods that the candidate's are compared with."""
        return self.baseline_revision or self.stable_revision


class RolloutVerdict(models.Model):
    """The whole evidence each time that a verdict changed: what a person saw, and decided on."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="verdicts")
    at = models.DateTimeField()
    phase = models.CharField(max_length=10)
    step_index = models.PositiveSmallIntegerField()
    evidence_hash = models.CharField(max_length=64)
    # deployments.guards.domain.evidence.GuardResult, a list.
    guards = models.JSONField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["rollout", "evidence_hash"])]

    def __str__(self) -> str:
        return f"evidence of rollout {self.rollout_id} at {self.at:%H:%M:%S}"


class RolloutEvent(models.Model):
    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=30)
    message = models.TextField()
    actor_name = models.CharField(max_length=150, blank=True, default="")
    step_index = models.PositiveSmallIntegerField(default=0)
    # {"evidence": as in Rollout} of an abort; else empty.
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.message
