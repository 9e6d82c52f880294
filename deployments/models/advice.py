"""Advice on costs: what was last computed, what people answered, and what it saved."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.changes import ChangeRequest
from deployments.models.deployments import Deployment
from deployments.states import AdviceState
from portal.accounts.models import Team

_ANSWERABLE = ("open", "snoozed", "dismissed")


class AdviceItem(models.Model):
    """A way to spend less on one deployment or node. Dollars are for a month of 730 hours.

    Recomputed by a sweep while nobody requested it; from the request on, what it promised stays.
    """

    # Null: a node, which is not a team's.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    deployment = models.ForeignKey(
        Deployment, on_delete=models.CASCADE, null=True, related_name="advice"
    )
    node_uid = models.CharField(max_length=64, blank=True, default="")
    # Of a node its name, with its cluster.
    subject = models.CharField(max_length=300)
    # A key of deployments/advice/domain/kinds/
    kind = models.CharField(max_length=20)
    state = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in AdviceState],
        default=AdviceState.OPEN.value,
    )
    message = models.TextField()
    # deployments.advice.domain.evidence.EvidenceLine, a list.
    evidence = models.JSONField(default=list)
    formula = models.TextField()
    # low, medium or high, and why
    risk = models.CharField(max_length=6)
    risk_reason = models.TextField()
    cost_amount = models.DecimalField(max_digits=14, decimal_places=2)
    saving_amount = models.DecimalField(max_digits=14, decimal_places=2)
    # deployments.advice.domain.advice.Proposal as JSON; {}: nothing that a change request can do.
    proposal = models.JSONField(default=dict)
    first_seen_at = models.DateTimeField()
    computed_at = models.DateTimeField()
    # Of an idle deployment: how often its team was warned, and when last.
    warnings = models.PositiveSmallIntegerField(default=0)
    warned_at = models.DateTimeField(null=True)
    # Of a snooze or a dismissal.
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    answer_reason = models.TextField(blank=True, default="")
    snoozed_until = models.DateTimeField(null=True)
    change = models.OneToOneField(
        ChangeRequest, on_delete=models.PROTECT, null=True, related_name="advice"
    )
    applied_at = models.DateTimeField(null=True)
    # From the sealed hours since it was applied; null: none yet.
    realised_amount = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    realised_hours = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-saving_amount", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(deployment__isnull=False, node_uid="")
                | models.Q(deployment=None, team=None) & ~models.Q(node_uid=""),
                name="advice_on_a_deployment_or_a_node",
            ),
            models.UniqueConstraint(
                fields=["deployment", "kind"],
                condition=models.Q(state__in=_ANSWERABLE, deployment__isnull=False),
                name="one_advice_of_each_kind",
            ),
            models.UniqueConstraint(
                fields=["node_uid", "kind"],
                condition=models.Q(state__in=_ANSWERABLE, deployment=None),
                name="one_advice_for_each_node",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    saving_amount__gte=0, saving_amount__lte=models.F("cost_amount")
                ),
                name="saves_no_more_than_it_costs",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.subject}"
