"""The automatic promotion limit of a team, set by its leads. It applies at once, to all rollouts."""

from __future__ import annotations

from django.db import transaction

from deployments.models import RolloutLimit
from deployments.plans.domain import auto_promotion_limit
from deployments.plans.selectors import auto_promotion
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid

CHOSEN = register("team.rollout_limit_set", "set the automatic promotion limit of")


def percent_of(*, actor: User, team: Team) -> int:
    policy.require(actor, Action.VIEW, team)
    return auto_promotion.percent_of(team.pk)


def choose(*, actor: User, team: Team, percent: int) -> int:
    """Set the automatic promotion limit. Setting the current value changes nothing."""
    policy.require(actor, Action.PROMOTE, team)
    if not 0 <= percent <= auto_promotion_limit.NO_LIMIT:
        raise Invalid("Enter a limit from 0 to 100%.", fields={"percent": "0 to 100"})
    with transaction.atomic():
        before = auto_promotion.percent_of(team.pk)
        if before == percent:
            return percent
        RolloutLimit.objects.update_or_create(
            team=team, defaults={"percent": percent, "set_by": actor, "set_at": clock.now()}
        )
        trail.record(
            actor=actor,
            action=CHOSEN,
            obj=team,
            team_slug=team.slug,
            before={"percent": before},
            after={"percent": percent},
        )
    return percent
