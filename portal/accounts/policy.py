"""Permissions, by the table of permission_table.py. Services call `require`; pages may call `is_allowed`.

An object that a user may not see raises NotFound. An action that a user may not perform on a visible
object raises Forbidden and names the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import Exists, OuterRef, QuerySet

from portal.accounts import four_eyes, scopes
from portal.accounts.models import Delegation, Membership, Role, Team, User
from portal.accounts.permission_table import (
    ADMIN,
    DELEGABLE,
    NOT_THE_REQUESTER,
    RULES,
    SCOPES,
    Action,
)
from portal.core import clock
from portal.core.errors import Forbidden, NotFound
from portal.core.single_row import find_one

# Of the table: callers of `require` name an action.
__all__ = ["ADMIN", "Action"]


@dataclass(frozen=True, slots=True)
class System:
    """The actor of workers and sweeps. It carries out users' decisions and makes none."""

    name: str = "slipway"


SYSTEM = System()
Actor = User | System


class TeamOwned(Protocol):
    @property
    def team(self) -> Team: ...


def actor_name(actor: Actor) -> str:
    return actor.name if isinstance(actor, System) else actor.username


def role_in(actor: Actor, team: Team) -> str | None:
    """Return the actor's role in the team: a Role, "admin", or None for a stranger."""
    if isinstance(actor, System):
        return ADMIN
    if not actor.is_authenticated or not actor.is_active or _is_beyond_token(actor, team):
        return None
    if actor.is_platform_admin:
        return ADMIN
    return find_one(Membership.objects.filter(user=actor, team=team).values_list("role", flat=True))


@dataclass(frozen=True, slots=True)
class TeamRights:
    """The facts about the actor in one team that a decision needs. The functions are called only if it depends on
    them: each may be a query, or known for many teams already.
    """

    # As `role_in` says.
    role: str | None
    delegating_leads: Callable[[], Sequence[int]]
    # Ids of the accounts that count as one person with the requester (`four_eyes`).
    requesters: Callable[[], frozenset[int]]


def require(
    actor: Actor, action: Action, obj: Team | TeamOwned, *, requester_id: int | None = None
) -> None:
    """Raise NotFound for strangers and Forbidden, naming the rule, for those without the role.

    Pass `requester_id` for decisions that need four eyes.
    """
    team = obj if isinstance(obj, Team) else obj.team
    rights = TeamRights(
        role_in(actor, team),
        lambda: leads_delegating_to(actor, team),
        lambda: four_eyes.one_person_with(requester_id),
    )
    require_with_rights(actor, action, rights, team=team.slug, requester_id=requester_id)


def require_with_rights(
    actor: Actor, action: Action, rights: TeamRights, *, team: str, requester_id: int | None
) -> None:
    """Apply the rules of `require`. `team` is named in the refusal."""
    role = rights.role
    if role is None:
        raise NotFound("Not found, or you are not in the team that owns it.")
    require_entitled(actor, action)
    if role not in RULES[action] and not _is_delegated(action, rights):
        allowed = " or ".join(sorted(RULES[action]))
        raise Forbidden(
            f"Your role in {team} is {role}. To {action}, you need the role {allowed}.",
            code="role_required",
        )
    if action in NOT_THE_REQUESTER and isinstance(actor, User):
        _require_another(actor, action, rights, team, requester_id)


def require_another(actor: User, action: Action, team: Team, requester_id: int | None) -> None:
    """Require another person (four eyes). Raises Forbidden for the requester, and for who counts as one person with
    them.
    """
    rights = TeamRights(None, tuple, lambda: four_eyes.one_person_with(requester_id))
    _require_another(actor, action, rights, team.slug, requester_id)


def _require_another(
    actor: User, action: Action, rights: TeamRights, team: str, requester_id: int | None
) -> None:
    if actor.pk == requester_id:
        done = (
            "uploaded this version"
            if action == Action.RELEASE_QUARANTINE
            else "requested this change"
        )
        raise Forbidden(
            f"You {done}, so someone else in {team} must {action} (four eyes).",
            code="four_eyes",
        )
    if actor.pk in rights.requesters():
        raise Forbidden(
            f"{four_eyes.explain()} So someone else in {team} must {action} (four eyes).",
            code="four_eyes",
        )


def require_entitled(actor: Actor, action: Action) -> None:
    """Require that the actor is entitled, whatever the role: a service account does only what its scopes can be, a
    token what its scopes are. Raises Forbidden.
    """
    if isinstance(actor, System):
        return
    needed = SCOPES[action]
    if actor.is_service_account and needed not in scopes.OF_SERVICE_ACCOUNTS:
        raise Forbidden(
            f"{actor.username} is a service account. Only a person can {action}.",
            code="person_required",
        )
    if actor.grant is not None:
        scopes.require(actor.grant, needed, what=action)


def _is_beyond_token(actor: User, team: Team) -> bool:
    return actor.grant is not None and actor.grant.team_id not in (None, team.pk)


def leads_delegating_to(actor: Actor, team: Team) -> list[int]:
    """Return the ids of the team's current leads for whom the actor may approve now, by age of the delegation."""
    if isinstance(actor, System):
        return []
    return list(
        running_delegations().filter(delegate=actor, team=team).values_list("lead", flat=True)
    )


def running_delegations() -> QuerySet[Delegation]:
    """Return the delegations in force: the lead is still a lead, and the delegate is not just a viewer."""
    at = clock.now()
    rows = Delegation.objects.filter(starts_at__lte=at, ends_at__gt=at, ended_at=None)
    still_leads = Membership.objects.filter(
        user=OuterRef("lead"), team=OuterRef("team"), role=Role.LEAD
    )
    may_act = Membership.objects.filter(
        user=OuterRef("delegate"), team=OuterRef("team"), role__in=(Role.MEMBER, Role.LEAD)
    )
    return rows.filter(Exists(still_leads), Exists(may_act), lead__is_active=True).order_by("id")


def _is_delegated(action: Action, rights: TeamRights) -> bool:
    """Whether a delegation permits the action. A delegate may not approve the delegating lead's own
    request.
    """
    if action not in DELEGABLE:
        return False
    excluded = rights.requesters()
    return any(lead_id not in excluded for lead_id in rights.delegating_leads())


def is_allowed(
    actor: Actor, action: Action, obj: Team | TeamOwned, *, requester_id: int | None = None
) -> bool:
    try:
        require(actor, action, obj, requester_id=requester_id)
    except (NotFound, Forbidden):
        return False
    return True


def require_platform_admin(actor: Actor, action: Action = Action.MANAGE_PLATFORM) -> None:
    if isinstance(actor, User) and not actor.is_platform_admin:
        raise Forbidden(f"Only a platform admin can {action}.", code="role_required")
    require_entitled(actor, action)


def visible_teams(actor: Actor) -> QuerySet[Team]:
    """Return the teams that the actor may see: all for admins and the system; one for a token of one team."""
    if sees_all(actor):
        return Team.objects.all()
    team_id = only_team(actor)
    rows = Team.objects.all() if _is_admin(actor) else teams_of(actor)
    return rows if team_id is None else rows.filter(pk=team_id)


def sees_all(actor: Actor) -> bool:
    """Whether the actor sees every team and what belongs to none."""
    return _is_admin(actor) and only_team(actor) is None


def _is_admin(actor: Actor) -> bool:
    return isinstance(actor, System) or actor.is_platform_admin


def only_team(actor: Actor) -> int | None:
    """Return the id of the team to which the token of the request is limited."""
    grant = None if isinstance(actor, System) else actor.grant
    return grant.team_id if grant else None


def teams_of(member: Any) -> QuerySet[Team]:
    return Team.objects.filter(memberships__user=member)


def roles_in_visible_teams(actor: User) -> list[tuple[Team, str]]:
    """Return the visible teams with the role of `role_in`, in two queries for any number of teams."""
    teams = visible_teams(actor)
    if actor.is_platform_admin:
        return [(team, ADMIN) for team in teams]
    roles = dict(Membership.objects.filter(user=actor).values_list("team_id", "role"))
    return [(team, roles[team.pk]) for team in teams if team.pk in roles]
