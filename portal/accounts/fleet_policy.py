"""Who may act on the fleet, which belongs to no team."""

from __future__ import annotations

from portal.accounts import four_eyes, policy, roles
from portal.accounts.models import User
from portal.accounts.policy import Action, Actor
from portal.core.errors import Forbidden


def require_requester(actor: Actor) -> None:
    """Require a lead of any team, or a platform admin: nodes belong to no team. Raises Forbidden."""
    require_whole_fleet(actor, Action.REQUEST_FLEET_ACTION)
    if isinstance(actor, User) and not roles.is_lead(actor):
        raise Forbidden(
            f"Only a lead or a platform admin can {Action.REQUEST_FLEET_ACTION}.",
            code="role_required",
        )
    policy.require_entitled(actor, Action.REQUEST_FLEET_ACTION)


def require_approver(actor: Actor, *, requester_id: int) -> None:
    """Require a platform admin who did not request the action (four eyes). Raises Forbidden."""
    action = Action.DECIDE_FLEET_ACTION
    require_whole_fleet(actor, action)
    policy.require_platform_admin(actor, action)
    if not isinstance(actor, User):
        return
    if actor.pk == requester_id:
        raise Forbidden(
            "You requested this, so another platform admin must decide (four eyes).",
            code="four_eyes",
        )
    if actor.pk in four_eyes.one_person_with(requester_id):
        raise Forbidden(
            f"{four_eyes.explain()} So another platform admin must decide (four eyes).",
            code="four_eyes",
        )


def require_whole_fleet(actor: Actor, action: Action) -> None:
    """Raise Forbidden for a token that is limited to one team, which may not change what holds pods of all teams.
    Applies to stopping an action too.
    """
    if policy.only_team(actor) is not None:
        raise Forbidden(
            f"This token is limited to one team. To {action}, use one of all teams.",
            code="whole_fleet_required",
        )
