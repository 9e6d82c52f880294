"""Alerts of teams: each has one opening and one end, and stays as history."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.deployments import Deployment
from portal.accounts.models import Team


class Alert(models.Model):
    """Something that a team should act on, from when it was found until it no longer held."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    # A code of deployments.alerts.domain.catalogue
    kind = models.CharField(max_length=20)
    # What it is about, within its team and kind: at most one of these is open.
    key = models.CharField(max_length=80)
    deployment = models.ForeignKey(
        Deployment, on_delete=models.CASCADE, null=True, related_name="alerts"
    )
    subject = models.CharField(max_length=200)
    message = models.TextField()
    # Path of the page that shows what it is about.
    path = models.CharField(max_length=300)
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # When the team was notified; null: not yet, or silenced.
    told_at = models.DateTimeField(null=True)
    silenced_until = models.DateTimeField(null=True)
    silenced_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    silence_reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "kind", "key"],
                condition=models.Q(ended_at=None),
                name="one_open_alert_of_each",
            ),
            models.CheckConstraint(
                condition=models.Q(ended_at=None) | models.Q(ended_at__gte=models.F("opened_at")),
                name="alert_ends_after_its_opening",
            ),
        ]
        indexes = [
            models.Index(fields=["team"], condition=models.Q(ended_at=None), name="open_alerts"),
            models.Index(fields=["team", "-id"], name="alerts_of_team"),
        ]

    def __str__(self) -> str:
        return self.subject
