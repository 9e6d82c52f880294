"""Presets of the platform and of teams. A request copies its preset, so edits change no deployment."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.accounts.models import Team


class DeploymentPreset(models.Model):
    # None: of the platform, for every team.
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, related_name="deployment_presets"
    )
    name = models.CharField(max_length=60)
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    saved_at = models.DateTimeField()
    # A part of a serving spec: deployments.changes.domain.preset_settings.
    settings = models.JSONField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="one_preset_per_name"),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(team=None),
                name="one_platform_preset_per_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name
