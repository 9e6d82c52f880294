"""Requested actions on the fleet, from the request to its end."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from fleet.models.clusters import Cluster, Node
from portal.core.leases import Leased


class FleetAction(Leased):
    """fleet.actions.services.transitions is the only writer of `state`."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="actions")
    # fleet.actions.domain.kinds.ActionKind
    kind = models.CharField(max_length=20)
    # fleet.actions.domain.kinds.TargetKind, and its name.
    target_kind = models.CharField(max_length=12)
    target = models.CharField(max_length=253)
    node = models.ForeignKey(
        Node, on_delete=models.CASCADE, null=True, blank=True, related_name="actions"
    )
    # Of the kind, as requested: fleet.actions.domain.drain_settings.
    parameters = models.JSONField(default=dict)
    comment = models.TextField(blank=True, default="")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="fleet_actions"
    )
    # fleet.actions.domain.evidence.Evidence, and the hash that an approval binds to.
    evidence = models.JSONField(default=dict)
    evidence_hash = models.CharField(max_length=64)
    # fleet.actions.domain.states.ActionState
    state = models.CharField(max_length=12, default="submitted")
    state_reason = models.TextField(blank=True, default="")
    deadline_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decision_comment = models.TextField(blank=True, default="")
    decided_at = models.DateTimeField(null=True)
    # fleet.actions.domain.progress.Progress
    progress = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "target_kind", "target"],
                condition=models.Q(state__in=["submitted", "approved", "applying", "canceling"]),
                name="one_open_fleet_action_per_target",
            )
        ]
        indexes = [models.Index(fields=["state", "-id"], name="fleet_actions_by_state")]

    @property
    def verb(self) -> str:
        return (
            self.kind.replace("_", " ")
            .capitalize()
            .replace(" mig ", " MIG ")
            .replace(" gpu ", " GPU ")
        )

    @property
    def title(self) -> str:
        of = " of" if self.kind.startswith(("set_", "end_")) else ""
        return f"{self.verb}{of} {self.target}"

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} of {self.target}"
