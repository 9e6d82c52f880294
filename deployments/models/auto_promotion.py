"""The limit up to which rollouts of a team may promote automatically."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.accounts.models import Team


class RolloutLimit(models.Model):
    """The automatic promotion limit of a team. `percent` is of the requests; 0 means a person promotes every
    step. Edited in place.
    """

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="rollout_limit")
    percent = models.PositiveSmallIntegerField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField()

    class Meta:
        ordering = ["team"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(percent__lte=100), name="a_limit_is_a_share_of_requests"
            )
        ]

    def __str__(self) -> str:
        return f"{self.team}: {self.percent} %"
