"""Append-only audit trail, and the chain of hashes over it. Names are copies, so that rows outlive users
and objects.
"""

from __future__ import annotations

from django.db import models


class AuditEvent(models.Model):
    at = models.DateTimeField(db_index=True)
    action = models.CharField(max_length=60)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150)
    team_slug = models.CharField(max_length=32, blank=True, default="", db_index=True)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=40)
    object_label = models.CharField(max_length=200)
    # The values that an action changed, by name: free-form, because each action has its own.
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    reason = models.TextField(blank=True, default="")
    evidence = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["object_type", "object_id"])]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_label}"


class ChainLink(models.Model):
    """The place of one event in the chain. Positions have no gaps; events are in the order of sealing.

    No foreign key: a link must outlive a deleted event, so that the deletion is found.
    """

    position = models.BigIntegerField(primary_key=True)
    event_id = models.BigIntegerField(unique=True)
    hash = models.CharField(max_length=64)
    sealed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.position}: event {self.event_id}"


class ChainAnchor(models.Model):
    """The head of the chain at the first moment of a day (UTC) that a worker ran."""

    day = models.DateField(unique=True)
    position = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    # The highest id that the chain had: later passes look for unsealed events above it.
    last_event_id = models.BigIntegerField()
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"anchor of {self.day}"


class AnchorCopy(models.Model):
    """The anchor is in the object store, under Object Lock until `locked_until` (None: no lock)."""

    anchor = models.OneToOneField(ChainAnchor, on_delete=models.PROTECT, related_name="copy")
    key = models.CharField(max_length=200)
    version_id = models.CharField(max_length=200, blank=True)
    locked_until = models.DateTimeField(null=True)
    stored_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key


class ChainCheck(models.Model):
    """The result of one verification of the whole chain; `problem` is empty when it is intact."""

    at = models.DateTimeField()
    position = models.BigIntegerField()
    anchors = models.PositiveIntegerField()
    problem = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.problem or f"intact up to {self.position}"


class StreamPosition(models.Model):
    """How far the chain was sent to a receiver: everything up to `position` arrived at least once."""

    target = models.CharField(max_length=300, unique=True)
    position = models.BigIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    # Of the last try; empty when it succeeded.
    error = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.target}: {self.position}"
