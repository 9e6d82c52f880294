"""Append-only audit trail. Names are copies, so that rows outlive users and objects."""

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
