"""Requests with known answers, what a rollout's candidate answered, and what services post about
outputs.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.deployments import Revision
from deployments.models.registry import Model, ModelVersion
from deployments.models.rollouts import Rollout
from deployments.states import ProbePurpose, ProbeVerdict
from portal.accounts.models import Team
from portal.core.leases import Leased


class GoldenRequest(models.Model):
    """A request to a model with the answer that is right. Immutable: an edit retires this row and
    makes the next number of the same name.
    """

    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="golden_requests")
    name = models.CharField(max_length=60)
    number = models.PositiveIntegerField()
    # The body of the v2 inference protocol: {"inputs": [{"name", "datatype", "shape", "data"}]}
    request = models.JSONField()
    # deployments.quality.domain.output_comparison: Output, a list; and Tolerance by output. Outputs left
    # out have the default of their datatype.
    expected = models.JSONField()
    tolerances = models.JSONField(default=dict)
    # The version that gave the answer, when it was saved from a served version.
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, null=True, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["model", "name", "number"], name="one_golden_request_per_number"
            ),
            models.UniqueConstraint(
                fields=["model", "name"],
                condition=models.Q(retired_at=None),
                name="one_live_golden_request_per_name",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} golden request {self.name}"

    @property
    def team(self) -> Team:
        return self.model.team


class GoldenRun(Leased):
    """The golden requests of one rollout, sent to its candidate and its stable revision.

    Once before any traffic, with a verdict that stays; then again and again as probes while a step
    runs. The requests are those that were saved when the run began.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="golden_runs")
    purpose = models.CharField(max_length=14, choices=[(p.value, p.value) for p in ProbePurpose])
    verdict = models.CharField(
        max_length=10,
        choices=[(v.value, v.value) for v in ProbeVerdict],
        default=ProbeVerdict.WAITING.value,
    )
    message = models.TextField(blank=True, default="")
    signature_verdict = models.CharField(
        max_length=10,
        choices=[(v.value, v.value) for v in ProbeVerdict],
        default=ProbeVerdict.WAITING.value,
    )
    signature_message = models.TextField(blank=True, default="")
    # Complete passes over all requests.
    rounds = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rollout", "purpose"], name="one_golden_run_per_purpose"
            )
        ]

    def __str__(self) -> str:
        return f"{self.purpose} of rollout {self.rollout_id}"


class GoldenResult(models.Model):
    """The last answer to one golden request within a run."""

    run = models.ForeignKey(GoldenRun, on_delete=models.CASCADE, related_name="results")
    golden = models.ForeignKey(GoldenRequest, on_delete=models.PROTECT, related_name="results")
    verdict = models.CharField(
        max_length=10,
        choices=[(v.value, v.value) for v in ProbeVerdict],
        default=ProbeVerdict.WAITING.value,
    )
    message = models.TextField(blank=True, default="")
    # deployments.quality.domain.output_comparison.Difference per output: the candidate's answer against the expected
    # one, and against the stable revision's; the latter empty while stable has not answered.
    against_expected = models.JSONField(default=list)
    against_stable = models.JSONField(default=list)
    stable_message = models.TextField(blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    checked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["golden__name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "golden"], name="one_golden_result_per_request")
        ]

    def __str__(self) -> str:
        return f"{self.golden_id}: {self.verdict}"


class QualityObservation(models.Model):
    """The summary of one posted batch of values about a revision's answers, summed up when it came."""

    revision = models.ForeignKey(
        Revision, on_delete=models.CASCADE, related_name="quality_observations"
    )
    # deployments.guards.domain.answers.answer_metrics.AnswerKind
    kind = models.CharField(max_length=24)
    n = models.PositiveIntegerField()
    # {bucket: count}: labels, buckets of lengths, good and bad, buckets of distances
    counts = models.JSONField(default=dict)
    # Sum of unit vectors, for embeddings.
    total = models.JSONField(default=list)
    posted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["revision", "kind", "at"])]

    def __str__(self) -> str:
        return f"{self.n} {self.kind} of revision {self.revision_id}"


class EmbeddingReference(models.Model):
    """The first embeddings of a revision after it was deployed: what later ones are compared with."""

    revision = models.OneToOneField(
        Revision, on_delete=models.CASCADE, related_name="embedding_reference"
    )
    n = models.PositiveIntegerField(default=0)
    # Sum of unit vectors.
    total = models.JSONField(default=list)
    captured_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.n} embeddings of revision {self.revision_id}"
