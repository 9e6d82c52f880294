"""Readings of the cluster's Prometheus for a running rollout."""

from __future__ import annotations

from django.db import models

from deployments.models.rollouts import Rollout
from portal.core.leases import Leased


class PrometheusReading(Leased):
    """The readings of one rollout whose guards need Prometheus. Written by the worker that holds the row's
    lease.
    """

    rollout = models.OneToOneField(
        Rollout, on_delete=models.CASCADE, related_name="prometheus_reading"
    )
    # The step of `state`: RolloutProgress.step_key. Another step keeps the capital of its tests only.
    step = models.CharField(max_length=60, blank=True, default="")
    # deployments.guards.domain.prometheus_state.State
    state = models.JSONField(default=dict)
    read_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"Prometheus readings of rollout {self.rollout_id}"
