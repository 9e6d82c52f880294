"""Rollout plans that a team starts from. A request copies its template, so edits change no rollout."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.accounts.models import Team


class RolloutTemplate(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="rollout_templates")
    name = models.CharField(max_length=60)
    # deployments.plans.domain.rollout_plan.RolloutPlan, in two columns.
    steps = models.JSONField()
    plan = models.JSONField()
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    saved_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="one_template_per_name")
        ]

    def __str__(self) -> str:
        return self.name
