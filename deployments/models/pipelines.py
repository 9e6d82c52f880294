"""Pipelines: several deployments of a team behind one address, and the keys by which it calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import models

from deployments.states import DeploymentState, Environment
from portal.accounts.models import Team
from portal.core.leases import Leased


class Pipeline(Leased):
    """Several deployments of a team behind one address. Desired and observed are separate columns."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="pipelines")
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=30)
    namespace = models.CharField(max_length=63)
    environment = models.CharField(max_length=11, choices=[(e.value, e.value) for e in Environment])
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    # By name the rules.CallableDeployment that it calls or None, as `pipelines.preload_members` read it for a list.
    preloaded_members: Mapping[str, Any] | None = None

    # Desired: what was approved last, as deployments.pipelines.domain.pipeline_spec.PipelineSpec;
    # {} until the first approval.
    spec = models.JSONField(default=dict)
    # Its objects are removed from the cluster; it can start again.
    is_stopped = models.BooleanField(default=False)
    is_retiring = models.BooleanField(default=False)
    is_retired = models.BooleanField(default=False)
    desired_generation = models.PositiveIntegerField(default=0)

    # Observed.
    observed_generation = models.PositiveIntegerField(default=0)
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in DeploymentState],
        default=DeploymentState.PENDING.value,
    )
    state_reason = models.TextField(blank=True, default="")
    # deployments.pipelines.domain.observed.ObservedPipeline
    observed = models.JSONField(default=dict)
    observed_at = models.DateTimeField(null=True)
    first_ready_at = models.DateTimeField(null=True)
    progress_deadline_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["team__slug", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"],
                condition=models.Q(is_retired=False),
                name="one_live_pipeline_per_name",
            )
        ]

    def __str__(self) -> str:
        return f"{self.team.slug}/{self.name}"


class PipelineKey(models.Model):
    """The key that the gateway adds to requests of a pipeline, for its deployments that need one. Each of these has a
    CallerKey with it. The newest that all of them accept is in use.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="keys")
    # Encrypted for the gateway; erased when the key ends.
    sealed = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    # When the gateway was last told to use it; null: never.
    written_at = models.DateTimeField(null=True)
    # When a newer one came into use.
    replaced_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.pk} of {self.pipeline_id}"
