"""Requests that the portal itself sent to a revision, bypassing its route."""

from __future__ import annotations

from django.db import models

from deployments.models.deployments import Deployment, Revision


class SyntheticRequest(models.Model):
    """A golden request or trial that was answered. Kept for an hour."""

    revision = models.ForeignKey(
        Revision, on_delete=models.CASCADE, related_name="synthetic_requests"
    )
    at = models.DateTimeField()

    class Meta:
        ordering = ["at"]
        indexes = [models.Index(fields=["revision", "at"])]

    def __str__(self) -> str:
        return f"synthetic request to revision {self.revision_id}"


class SyntheticHour(models.Model):
    """The number of requests that the portal sent to a deployment in an hour. Kept for 60 days."""

    deployment = models.ForeignKey(
        Deployment, on_delete=models.CASCADE, related_name="synthetic_hours"
    )
    start = models.DateTimeField()
    requests = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["start"]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "start"], name="one_synthetic_hour")
        ]

    def __str__(self) -> str:
        return f"{self.requests} synthetic requests to {self.deployment_id}"
