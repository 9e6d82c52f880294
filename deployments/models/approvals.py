"""Who must approve what, as rows."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.accounts.models import Team

_ROLES = ("lead", "admin", "named")


class ApprovalRule(models.Model):
    """A rule that adds to the default of one lead with four eyes; it never takes anything from it.

    Empty lists, no team and no amount mean "any". Edited in place: approvals given under the
    earlier wording become void, because the rule is part of what an approval binds to.
    """

    name = models.CharField(max_length=80, unique=True)
    is_enabled = models.BooleanField(default=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="+")
    environments = models.JSONField(default=list)
    kinds = models.JSONField(default=list)
    # Applies above this many dollars a month at full scale-out, and when the price is not known.
    above_month_amount = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    # Instance types or names of GPUs, with * for anything: "p5.*", "h100".
    gpus = models.JSONField(default=list)
    # Applies only to changes after which callers need no key any more.
    only_opening = models.BooleanField(default=False, db_default=False)
    # Who may give it: leads and admins, admins alone, or nobody but the people named.
    role = models.CharField(max_length=5, choices=[(role, role) for role in _ROLES])
    people = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    needed = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(needed__gte=1), name="a_rule_needs_an_approval"
            ),
            models.CheckConstraint(condition=models.Q(role__in=_ROLES), name="known_approver_role"),
        ]

    def __str__(self) -> str:
        return self.name
