"""What the portal itself asked of a revision, past its route."""

from __future__ import annotations

from django.db import models

from deployments.models.deployments import Revision


class OwnRequest(models.Model):
    """One answered golden request or trial. Kept for an hour."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="own_requests")
    at = models.DateTimeField()

    class Meta:
        ordering = ["at"]
        indexes = [models.Index(fields=["revision", "at"])]

    def __str__(self) -> str:
        return f"own request to revision {self.revision_id}"
