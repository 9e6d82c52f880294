"""The watch of a deployment's stable revision after its rollout."""

from __future__ import annotations

from django.db import models

from deployments.models.deployments import Deployment, Revision
from deployments.states import HealthCheckKind, HealthVerdict
from portal.core.leases import Leased


class DeploymentHealth(Leased):
    """The state of the watch of one deployment, which a sweep advances every 15 minutes."""

    deployment = models.OneToOneField(Deployment, on_delete=models.CASCADE, related_name="health")
    is_on = models.BooleanField(default=True)
    # The stable revision that is judged, since when, and how many of its days were judged.
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, null=True, related_name="+")
    since = models.DateTimeField(null=True)
    judged_days = models.PositiveIntegerField(default=0)
    checked_at = models.DateTimeField(null=True)
    # deployments.health.domain.state.MetricState by metric.
    baseline = models.JSONField(default=dict)
    baseline_message = models.TextField(blank=True, default="")
    golden_verdict = models.CharField(
        max_length=10,
        choices=[(v.value, v.value) for v in HealthVerdict],
        default=HealthVerdict.NOT_KNOWN.value,
    )
    golden_message = models.TextField(blank=True, default="")
    golden_checked_at = models.DateTimeField(null=True)
    # deployments.health.domain.drift.DayVerdict by kind, of the last day that was judged.
    answers = models.JSONField(default=dict)

    class Meta:
        ordering = ["deployment_id"]

    def __str__(self) -> str:
        return f"health of {self.deployment_id}"


class HealthRecord(models.Model):
    """A line of the history: a verdict that changed, or a day that was judged."""

    deployment = models.ForeignKey(
        Deployment, on_delete=models.CASCADE, related_name="health_records"
    )
    at = models.DateTimeField()
    kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in HealthCheckKind])
    # The metric of a baseline, or the kind of answers.
    subject = models.CharField(max_length=24, blank=True, default="")
    verdict = models.CharField(max_length=10, choices=[(v.value, v.value) for v in HealthVerdict])
    message = models.TextField()
    revision_number = models.PositiveIntegerField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["deployment", "-at"])]

    def __str__(self) -> str:
        return self.message


class AnswerDay(models.Model):
    """The sums of what was posted about one of the first days of a revision: its reference."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="answer_days")
    # deployments.guards.domain.answers.answer_metrics.AnswerKind
    kind = models.CharField(max_length=24)
    # 0 is the day that began with its promotion.
    day = models.PositiveSmallIntegerField()
    n = models.PositiveIntegerField()
    counts = models.JSONField(default=dict)
    total = models.JSONField(default=list)

    class Meta:
        ordering = ["day"]
        constraints = [
            models.UniqueConstraint(
                fields=["revision", "kind", "day"], name="one_reference_per_day"
            )
        ]

    def __str__(self) -> str:
        return f"day {self.day} of revision {self.revision_id}"
