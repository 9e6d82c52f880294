"""Change requests of deployments and pipelines, what people decided on them, and emergency reviews."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.deployments import Deployment, Revision
from deployments.models.pipelines import Pipeline
from deployments.states import ChangeKind, ChangeState, PipelineChangeKind
from portal.accounts.models import Team
from portal.core.leases import Leased

_DEPLOYMENT_KINDS = tuple(kind.value for kind in ChangeKind)
_PIPELINE_KINDS = tuple(kind.value for kind in PipelineChangeKind)
_KINDS = sorted({*_DEPLOYMENT_KINDS, *_PIPELINE_KINDS})
_OPEN = ("submitted", "approved", "applying")


class ChangeRequest(Leased):
    """A request for one change of one deployment or pipeline: its subject. The subject of a first request is
    created with it, and is closed when that request is refused.
    """

    # That of the subject, which never changes.
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="change_requests")
    deployment = models.ForeignKey(
        Deployment, on_delete=models.PROTECT, null=True, related_name="changes"
    )
    pipeline = models.ForeignKey(
        Pipeline, on_delete=models.PROTECT, null=True, related_name="changes"
    )
    # A ChangeKind for a deployment, a PipelineChangeKind for a pipeline.
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in _KINDS])
    state = models.CharField(max_length=10, choices=[(s.value, s.value) for s in ChangeState])
    state_reason = models.TextField(blank=True, default="")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="change_requests"
    )
    comment = models.TextField(blank=True, default="")
    # Of a deployment: the revision to serve (deploy, canary, scale, start, roll back).
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="+")
    # deployments.plans.domain.rollout_plan.RolloutPlan, in two columns.
    steps = models.JSONField(default=list)
    plan = models.JSONField(default=dict)
    # For a roll back: the number of the revision to which it returns; up to 0.3.0 `revision` is a copy of it.
    restored_number = models.PositiveIntegerField(null=True)
    # For a scale change: {"revision", "min_replicas", "max_replicas", "scaling", "network"}
    scale = models.JSONField(default=dict)
    # The GPU's name on the cluster at the time of the request; approval rules match on it.
    # Of several instance types each, comma-separated.
    gpu_name = models.CharField(max_length=400, blank=True, default="")
    # Keys of the golden requests that are approved with it; they are sent to the candidate.
    golden = models.JSONField(default=list)
    # deployments.environments.domain.promotion.PromotionEvidence as JSON; {} without any.
    promotion = models.JSONField(
        default=dict, db_default=models.Value({}, output_field=models.JSONField())
    )
    # Of a pipeline: the desired deployments.pipelines.domain.pipeline_spec.PipelineSpec; {} to remove it.
    pipeline_spec = models.JSONField(default=dict)
    # deployments.preflight.domain.checks: Check, a list; LastRecheck, or {}; and Cost.
    checks = models.JSONField(default=list)
    last_recheck = models.JSONField(default=dict)
    cost = models.JSONField(default=dict)
    # deployments.approvals.domain.requirement.Requirement as JSON: what the rules required when last evaluated.
    required = models.JSONField(default=list)
    # As deployments/changes/selectors/evidence.py; an approval is void when it no longer matches.
    evidence_hash = models.CharField(max_length=64, blank=True, default="")
    # What the page showed at the decision: deployments.changes.domain.shown_evidence.ShownEvidence; {} until then.
    decided = models.JSONField(default=dict)
    # The request that this one was written from, by "Edit and resubmit".
    replaces = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="replacements"
    )
    # W3C trace context of the request that made it (portal.core.tracing); empty: none.
    trace = models.CharField(max_length=55, blank=True, default="", db_default="")
    created_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "-id"])]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    deployment__isnull=False, pipeline=None, kind__in=_DEPLOYMENT_KINDS
                )
                | models.Q(pipeline__isnull=False, deployment=None, kind__in=_PIPELINE_KINDS),
                name="one_subject_and_a_kind_of_it",
            ),
            models.UniqueConstraint(
                fields=["deployment"],
                condition=models.Q(state__in=_OPEN),
                name="one_open_change_per_deployment",
            ),
            models.UniqueConstraint(
                fields=["pipeline"],
                condition=models.Q(state__in=_OPEN),
                name="one_open_change_per_pipeline",
            ),
        ]

    def __str__(self) -> str:
        label = f"pipeline {self.pipeline}" if self.pipeline_id else str(self.deployment)
        return f"{self.noun} of {label}"

    @property
    def noun(self) -> str:
        """The noun for sentences, such as "deployment" or "roll back"."""
        if self.pipeline_id is not None:
            return PipelineChangeKind(self.kind).noun
        return ChangeKind(self.kind).noun

    @property
    def subject(self) -> Deployment | Pipeline:
        subject = self.deployment or self.pipeline
        if subject is None:
            raise ValueError(f"change request {self.pk} has no subject")
        return subject


class Approval(models.Model):
    """The decision of one person, with its role and the evidence that it was based on."""

    change = models.ForeignKey(ChangeRequest, on_delete=models.PROTECT, related_name="approvals")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    is_approved = models.BooleanField()
    # lead, admin, delegate, or named by a rule
    as_role = models.CharField(max_length=10, default="lead")
    # The lead on whose behalf a delegate decided.
    stands_for = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    # Given without the rules; an emergency review follows.
    is_emergency = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True)
    comment = models.TextField(blank=True, default="")
    evidence_hash = models.CharField(max_length=64)
    at = models.DateTimeField()
    # Set when the evidence or the rules changed afterwards.
    void_reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["at"]
        constraints = [
            models.UniqueConstraint(
                fields=["change", "user"],
                condition=models.Q(is_approved=True, void_reason=""),
                name="one_live_approval_per_person",
            )
        ]

    def __str__(self) -> str:
        return f"{'approved' if self.is_approved else 'rejected'} by {self.user_id}"


class RequestComment(models.Model):
    """The comment of a person who can see a request. Comments are never changed."""

    change = models.ForeignKey(ChangeRequest, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"comment of {self.author_id} on {self.change_id}"


class EmergencyReview(models.Model):
    """A request was approved without the rules; another lead or admin reviews that afterwards."""

    change = models.OneToOneField(
        ChangeRequest, on_delete=models.PROTECT, related_name="emergency_review"
    )
    opened_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    reason = models.TextField()
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True)
    finding = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["opened_at"]

    def __str__(self) -> str:
        return f"emergency review of {self.change}"

    @property
    def team(self) -> Team:
        return self.change.team
