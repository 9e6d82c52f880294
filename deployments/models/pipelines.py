"""Pipelines, the requests that change them, and what people decided on those."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.deployments import GivenApproval
from deployments.states import ChangeState, DeploymentState, Environment, PipelineChangeKind
from portal.accounts.models import Team
from portal.core.leases import Leased


class Pipeline(Leased):
    """Deployments of a team behind one address. Desired and observed are separate columns."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="pipelines")
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=30)
    namespace = models.CharField(max_length=63)
    environment = models.CharField(max_length=11, choices=[(e.value, e.value) for e in Environment])
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    # Desired: what was approved last, as deployments.pipelines.domain.pipeline_spec.PipelineSpec; {} is nothing yet.
    spec = models.JSONField(default=dict)
    # Nothing of it shall be on the cluster, but it may start again.
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
    # {"conditions": [{"type", "status", "reason", "message"}], "healed": words of the last edit undone}
    observed = models.JSONField(default=dict)
    observed_at = models.DateTimeField(null=True)
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


class PipelineChange(models.Model):
    """Asks for one change of one pipeline. For the first one the pipeline's row is made with it."""

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="changes")
    kind = models.CharField(max_length=10, choices=[(k.value, k.value) for k in PipelineChangeKind])
    state = models.CharField(max_length=10, choices=[(s.value, s.value) for s in ChangeState])
    state_reason = models.TextField(blank=True, default="")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="pipeline_changes"
    )
    comment = models.TextField(blank=True, default="")
    # What the pipeline shall be; {} for a retirement.
    spec = models.JSONField(default=dict)
    # deployments.approvals.domain.rules.Requirement as JSON: what the rules asked for when last looked at.
    required = models.JSONField(default=list)
    evidence_hash = models.CharField(max_length=64)
    # The pipeline's generation that this change brought about.
    generation = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    deadline_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "-id"], name="pipeline_changes_by_state")]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline"],
                condition=models.Q(state__in=["submitted", "approved", "applying"]),
                name="one_open_change_per_pipeline",
            )
        ]

    def __str__(self) -> str:
        return f"{PipelineChangeKind(self.kind).noun} of {self.pipeline}"

    @property
    def team(self) -> Team:
        return self.pipeline.team


class PipelineApproval(GivenApproval):
    change = models.ForeignKey(PipelineChange, on_delete=models.PROTECT, related_name="approvals")

    class Meta(GivenApproval.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["change", "user"],
                condition=models.Q(is_approved=True, void_reason=""),
                name="one_live_pipeline_approval_per_person",
            )
        ]
