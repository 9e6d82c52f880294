"""Office hours of node pools, and what was last done for them."""

from __future__ import annotations

from django.db import models

from fleet.models.actions import FleetAction
from fleet.models.clusters import Cluster
from portal.core.leases import Leased


class PoolOfficeHours(Leased):
    """fleet.office_hours.services.keep is the only writer of what was done."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="office_hours")
    # fleet.actions.domain.kinds.TargetKind, and its name.
    target_kind = models.CharField(max_length=12)
    target = models.CharField(max_length=253)
    # fleet.office_hours.domain.hours.OfficeHours
    hours = models.JSONField()
    # The request that set them as they are.
    action = models.ForeignKey(FleetAction, on_delete=models.SET_NULL, null=True, related_name="+")
    # Their end was approved: the pool gets the size of office hours back, then the row goes.
    is_ending = models.BooleanField(default=False)
    # fleet.office_hours.domain.decisions.PoolState; the sizes are those of fleet.office_hours.domain.sizes.
    is_open = models.BooleanField(default=True)
    open_size = models.JSONField(null=True)
    closed_size = models.PositiveIntegerField(null=True)
    last_size = models.JSONField(null=True)
    move = models.JSONField(null=True)
    # When it last opened or closed, and what a person changed since.
    edge_at = models.DateTimeField(null=True)
    changed_from = models.JSONField(null=True)
    changed_at = models.DateTimeField(null=True)
    # Why the last pass could not do what it had to; empty: it could.
    problem = models.TextField(blank=True, default="")
    problem_at = models.DateTimeField(null=True)
    is_problem_told = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["cluster__name", "target_kind", "target"]
        verbose_name = "office hours"
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "target_kind", "target"], name="office_hours_once_per_pool"
            )
        ]

    def __str__(self) -> str:
        return f"office hours of {self.target}"
