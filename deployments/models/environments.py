"""Rules of an environment, of the platform or of one team."""

from __future__ import annotations

from django.db import models

from portal.accounts.models import Team

_ENVIRONMENTS = ("development", "staging", "production")
_ROLES = ("lead", "admin")


class EnvironmentRule(models.Model):
    """The rules of an environment, as deployments.environments.domain.environment_rules.EnvironmentRules has
    them. The row of a team adds to the platform's, whose defaults hold while it has no row. Edited in place.
    """

    environment = models.CharField(max_length=11, choices=[(e, e) for e in _ENVIRONMENTS])
    # Null: the platform's.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    approvals = models.PositiveSmallIntegerField(default=1)
    role = models.CharField(max_length=5, choices=[(role, role) for role in _ROLES])
    stop_needs_approval = models.BooleanField(default=False)
    callers_need_key = models.BooleanField(default=False)
    golden_required = models.BooleanField(default=False)
    promoted_from = models.CharField(max_length=11, blank=True, default="")
    # Of the platform's row: clusters that admit no other environment than those that list them.
    clusters = models.ManyToManyField("fleet.Cluster", related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["environment", "team__slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["environment", "team"], name="one_environment_rule_per_team"
            ),
            models.UniqueConstraint(
                fields=["environment"],
                condition=models.Q(team=None),
                name="one_environment_rule_of_the_platform",
            ),
            models.CheckConstraint(
                condition=models.Q(environment__in=_ENVIRONMENTS), name="known_environment"
            ),
            models.CheckConstraint(
                condition=models.Q(approvals__gte=1, approvals__lte=5),
                name="an_environment_needs_one_to_five_approvals",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=_ROLES), name="known_role_of_an_environment"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.environment} of {self.team.slug if self.team else 'the platform'}"
