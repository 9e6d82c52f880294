"""Requests that the portal itself sent to a revision, bypassing its route."""

from __future__ import annotations

from django.db import models

from deployments.models.deployments import Revision


class SyntheticRequest(models.Model):
    """One answered golden request or trial. Kept for an hour."""

    revision = models.ForeignKey(
        Revision, on_delete=models.CASCADE, related_name="synthetic_requests"
    )
    at = models.DateTimeField()

    class Meta:
        ordering = ["at"]
        indexes = [models.Index(fields=["revision", "at"])]

    def __str__(self) -> str:
        return f"synthetic request to revision {self.revision_id}"
