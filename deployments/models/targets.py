"""Standing targets of deployments, and the requests that were counted for them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.deployments import Deployment
from deployments.states import TargetMetric
from portal.core.leases import Leased


class ServiceTarget(Leased):
    """A service level objective of one deployment: the share of good requests over the last days."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="targets")
    metric = models.CharField(max_length=12, choices=[(m.value, m.value) for m in TargetMetric])
    # 99.9 means that one request of a thousand may be bad.
    objective_percent = models.DecimalField(max_digits=6, decimal_places=3)
    window_days = models.PositiveSmallIntegerField()
    # Of a latency; null for availability.
    threshold_ms = models.PositiveIntegerField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    # Telemetry up to then is in the counts; null: none yet.
    counted_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["deployment_id", "metric"]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "metric"], name="one_target_per_metric"),
            models.CheckConstraint(
                condition=models.Q(objective_percent__gt=0, objective_percent__lt=100),
                name="objective_leaves_a_budget",
            ),
            models.CheckConstraint(
                condition=models.Q(metric="availability", threshold_ms=None)
                | ~models.Q(metric="availability") & models.Q(threshold_ms__gt=0),
                name="latency_has_a_threshold",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} of {self.deployment_id}"


class TargetCount(models.Model):
    """The requests of one minute or hour that was observed. A minute without a row is not known."""

    target = models.ForeignKey(ServiceTarget, on_delete=models.CASCADE, related_name="counts")
    start = models.DateTimeField()
    # 60 or 3600; minutes are kept for the burn rates only.
    seconds = models.PositiveSmallIntegerField()
    total = models.BigIntegerField()
    bad = models.BigIntegerField()
    # Of an hour: how many of its minutes are in these sums.
    known_minutes = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ["start"]
        constraints = [
            models.UniqueConstraint(
                fields=["target", "seconds", "start"], name="one_count_per_period"
            ),
            models.CheckConstraint(
                condition=models.Q(bad__gte=0, bad__lte=models.F("total")),
                name="bad_requests_are_requests",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bad} of {self.total} from {self.start:%Y-%m-%d %H:%M}"
