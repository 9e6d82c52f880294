"""Requests to take a safeguard of a deployment away."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from deployments.models.deployments import Deployment


class SafeguardRequest(models.Model):
    """A request to relax a safeguard of a deployment. It waits for the approvals that a change of the
    deployment would need, and is deleted with the last one.
    """

    class Safeguard(models.TextChoices):
        DRIFT = "drift", "hold drift for review"
        HEALTH = "health", "switch the watch off"

    deployment = models.ForeignKey(
        Deployment, on_delete=models.CASCADE, related_name="safeguard_requests"
    )
    safeguard = models.CharField(max_length=10, choices=Safeguard.choices)
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    # deployments.approvals.domain.rules.Approver as JSON, each with the time of the approval.
    approvals = models.JSONField(default=list)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["deployment", "safeguard"], name="one_request_for_each_safeguard"
            )
        ]

    def __str__(self) -> str:
        return f"{self.safeguard} of {self.deployment_id}"
