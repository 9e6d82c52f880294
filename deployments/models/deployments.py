"""Deployments, their immutable revisions, and their timeline."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.registry import ModelVersion
from deployments.states import DeploymentState, DriftPolicy, Environment
from portal.accounts.models import Team
from portal.core.leases import Leased


class Deployment(Leased):
    """A model server behind a stable URL. Desired and observed state are separate columns."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="deployments")
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=30)
    namespace = models.CharField(max_length=63)
    # Chosen once: rules of approval depend on it, so it never changes afterwards.
    environment = models.CharField(
        max_length=11,
        choices=[(e.value, e.value) for e in Environment],
        default=Environment.PRODUCTION.value,
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    # Desired. Any write to these raises `desired_generation`.
    stable_revision = models.ForeignKey(
        "Revision", on_delete=models.PROTECT, null=True, related_name="+"
    )
    candidate_revision = models.ForeignKey(
        "Revision", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # Pods of stable that the candidate is compared with: while it gets at most half of the requests, they
    # get as many (deployments.plans.domain.baseline).
    baseline_revision = models.ForeignKey(
        "Revision", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # Percent of requests that the route sends to the candidate.
    candidate_weight = models.PositiveSmallIntegerField(default=0)
    # Percent of requests that the route mirrors to it; its responses are dropped.
    candidate_mirror = models.PositiveSmallIntegerField(default=0)
    # Replicas of the candidate while a rollout gives it fewer than approved; null: as approved.
    candidate_replicas = models.PositiveSmallIntegerField(null=True)
    is_stopped = models.BooleanField(default=False)
    # What differs from the revision's spec, as deployments/spec/domain/replicas.py keeps it; without
    # effect on any other revision.
    scale = models.JSONField(default=dict)
    # Desired: everything removed. `is_retired` follows once no object of it is left on the cluster.
    is_retiring = models.BooleanField(default=False)
    is_retired = models.BooleanField(default=False)
    # Raised with each change of the callers' keys, so that the gateway gets them.
    caller_keys_generation = models.PositiveIntegerField(default=1)
    desired_generation = models.PositiveIntegerField(default=1)
    # Whether drift is reverted at once or pending until someone decides; the route is always reverted.
    drift_policy = models.CharField(
        max_length=8,
        choices=[(p.value, p.value) for p in DriftPolicy],
        default=DriftPolicy.RE_APPLY.value,
    )
    # Someone decided to revert the pending drift.
    is_revert_requested = models.BooleanField(default=False)

    # That of the change that is applied, until it ends; empty: none.
    trace = models.CharField(max_length=55, blank=True, default="", db_default="")

    # Observed.
    observed_generation = models.PositiveIntegerField(default=0)
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in DeploymentState],
        default=DeploymentState.PENDING.value,
    )
    state_reason = models.TextField(blank=True, default="")
    observed_weight = models.PositiveSmallIntegerField(null=True)
    observed_mirror = models.PositiveSmallIntegerField(null=True)
    # Revision to deployments.serving.domain.observed_revision.ObservedRevision as JSON: {"r1": {…}}; of a retired
    # deployment what deployments.sizing.domain.kept_peaks keeps.
    observed = models.JSONField(default=dict)
    observed_at = models.DateTimeField(null=True)
    first_ready_at = models.DateTimeField(null=True)
    progress_deadline_at = models.DateTimeField(null=True)
    # deployments.delivery.domain.drift.Drift as JSON; {} without drift.
    drift = models.JSONField(default=dict)
    # How the files in the bucket differ from what was approved; empty while they match.
    bytes_checked_at = models.DateTimeField(null=True)
    bytes_problem = models.TextField(blank=True, default="")
    # When all its objects were last compared with the desired manifests, and for which generation.
    objects_checked_at = models.DateTimeField(null=True)
    objects_checked_generation = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["team__slug", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"],
                condition=models.Q(is_retired=False),
                name="one_live_deployment_per_name",
            ),
            models.CheckConstraint(
                condition=models.Q(candidate_weight__lte=100), name="weight_is_a_percentage"
            ),
            models.CheckConstraint(
                condition=models.Q(candidate_mirror__lte=100), name="mirror_is_a_percentage"
            ),
            # Users either get its answers or they do not.
            models.CheckConstraint(
                condition=models.Q(candidate_weight=0) | models.Q(candidate_mirror=0),
                name="answers_or_is_mirrored",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team.slug}/{self.name}"


class Revision(models.Model):
    """An immutable, numbered serving spec of a deployment. Its workload is named {deployment}-r{number}."""

    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="revisions")
    # deployments.spec.domain.serving_spec.ServingSpec as JSON
    spec = models.JSONField()
    # Of the baseline of a rollout: the stable revision whose version it serves. It is no one's to roll
    # back to.
    baseline_of = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "number"], name="one_revision_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.deployment} r{self.number}"

    @property
    def team(self) -> Team:
        return self.deployment.team

    @property
    def workload_name(self) -> str:
        return f"{self.deployment.name}-r{self.number}"


class DeploymentEvent(models.Model):
    """The timeline of a deployment: one line per thing that happened, never per tick."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    # accepted, scheduled, node, image, download, load, ready, route, failed, …
    kind = models.CharField(max_length=30)
    message = models.TextField()
    revision_number = models.PositiveIntegerField(null=True)
    actor_name = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.message
