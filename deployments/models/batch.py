"""Batch jobs: a model version that scores files of rows, and how far it is."""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.db import models

from deployments.models.multipart import MultipartFile
from deployments.models.registry import ModelVersion
from portal.accounts.models import Team
from portal.core.leases import Leased

_GONE = ("rejected", "canceled")


class BatchJob(Leased):
    """A batch job. `state` is one of deployments.batch.domain.states, which its transitions alone write."""

    PLANNING: Final = "planning"
    STOPPING: Final = "stopping"
    # It has GPUs, or gets them without a further decision.
    HOLDING: ClassVar = (PLANNING, "running", STOPPING)

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="batch_jobs")
    name = models.CharField(max_length=40)
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="batch_jobs")
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.PROTECT, related_name="+")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    state = models.CharField(max_length=12)
    # Why it ended, or why it needs approval.
    state_reason = models.TextField(blank=True, default="")
    # What its workers do now.
    detail = models.TextField(blank=True, default="")
    # deployments.serving.domain.queue_state.QueueState, while workers wait in a queue of Kueue.
    queue_state = models.JSONField(null=True)
    deadline_at = models.DateTimeField(null=True)
    # deployments.batch.domain.settings.BatchSettings
    pods = models.JSONField(default=dict)
    input = models.CharField(max_length=800)
    output = models.CharField(max_length=800)
    # The input is a stream of messages: it ends with the deadline, and has no rows or chunks that are known before.
    is_queue = models.BooleanField(default=False, db_default=False)
    # Of a queue: what its workers reported (deployments.batch.domain.reports.Drained).
    drained = models.JSONField(null=True)
    # deployments.batch.domain.chunks.InputFile, in the order of their keys: these versions are read.
    files = models.JSONField(default=list)
    total_bytes = models.BigIntegerField(null=True)
    total_rows = models.BigIntegerField(null=True)
    done_rows = models.BigIntegerField(default=0)
    # Of the done ones: without an answer.
    failed_rows = models.BigIntegerField(default=0)
    first_error = models.TextField(blank=True, default="")
    # The most that its pods can cost until the deadline; null where the price is not known.
    cost_limit_amount = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    decision_comment = models.TextField(blank=True, default="")
    # Each start, also after a failure, is another Job.
    attempt = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    signed_at = models.DateTimeField(null=True)
    # While it stops: the state in which it will have ended.
    ends_as = models.CharField(max_length=12, blank=True, default="")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="one_batch_job_of_a_name"),
            models.UniqueConstraint(
                fields=["output"],
                condition=~models.Q(state__in=_GONE),
                name="one_batch_job_of_an_output",
            ),
        ]

    def __str__(self) -> str:
        return f"batch job {self.team.slug}/{self.name}"


class BatchChunk(models.Model):
    """The rows that a worker scores in one go. `done_at` is the checkpoint."""

    job = models.ForeignKey(BatchJob, on_delete=models.CASCADE, related_name="chunks")
    # From 0; also the number of its part of the output.
    number = models.PositiveIntegerField()
    # Index in the files of the job, and the bytes [start, end) of it.
    file = models.PositiveSmallIntegerField()
    start = models.BigIntegerField()
    end = models.BigIntegerField()
    rows = models.PositiveIntegerField()
    # The number of its first row among all rows, from 1.
    first_row = models.BigIntegerField()
    # Of a CSV file: the line in which it starts, from 1; 0: JSON lines.
    first_line = models.BigIntegerField(default=0, db_default=0)
    done_at = models.DateTimeField(null=True)
    failed_rows = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["job", "number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="one_batch_chunk_of_a_number")
        ]

    def __str__(self) -> str:
        return f"chunk {self.number} of {self.job_id}"


class BatchUpload(MultipartFile):
    """A file of rows that a person sends to the team's area. The row is deleted at `expires_at`, its parts too unless
    they were assembled.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    # Part of the key: no two uploads meet, and none replaces what a job reads.
    token = models.CharField(max_length=32, unique=True)
    path = models.CharField(max_length=100)
    has_part_checksums = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.team.slug}/{self.path}"

    @property
    def key(self) -> str:
        return f"batch/{self.team.slug}/uploads/{self.token}/{self.path}"
