"""Teams for their leads and platform admins: limits and their usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Q

from fleet.costs.domain.results import MonthSpend
from fleet.costs.selectors import costs
from portal.accounts import policy, roles, teams
from portal.accounts.models import Membership, Team, User
from portal.accounts.policy import Action
from portal.core.errors import Forbidden


@dataclass(frozen=True, slots=True)
class TeamRow:
    team: Team
    members: int
    gpus_in_use: Decimal


@dataclass(frozen=True, slots=True)
class TeamOverview:
    team: Team
    members: Sequence[Membership]
    spend: MonthSpend
    gpus_in_use: Decimal
    may_set_limits: bool

    @property
    def quota_percent(self) -> Decimal | None:
        return self.gpus_in_use * 100 / self.team.quota_gpus if self.team.quota_gpus else None

    @property
    def budget_percent(self) -> Decimal | None:
        budget = self.team.monthly_budget_amount
        return self.spend.total_amount * 100 / budget if budget else None


def list_teams(*, actor: User) -> Sequence[TeamRow]:
    """Raises Forbidden for users who manage no team."""
    led = roles.led_teams(actor).annotate(
        members=Count(
            "memberships",
            filter=Q(memberships__user__service_team=None),
            distinct=True,
        )
    )
    rows = list(led.order_by("slug"))
    if not rows and not actor.is_platform_admin:
        raise Forbidden(
            "Only team leads and platform admins can manage teams.", code="role_required"
        )
    held = costs.gpus_in_use_by_team(team_slugs=[team.slug for team in rows])
    return [TeamRow(team, team.members, held.get(team.slug, Decimal(0))) for team in rows]


def get_team_overview(*, actor: User, slug: str) -> TeamOverview:
    """Raises NotFound outside the team and Forbidden for users who may not manage its members."""
    team = teams.get_visible(actor=actor, slug=slug)
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    return TeamOverview(
        team=team,
        members=teams.list_members(actor=actor, team=team),
        spend=costs.sum_spend_this_month(team_slug=slug),
        gpus_in_use=costs.gpus_in_use(team_slug=slug),
        may_set_limits=policy.is_allowed(actor, Action.MANAGE_TEAM, team),
    )
