"""What one person may approve, for any number of teams and requesters."""

from __future__ import annotations

from portal.accounts import policy
from portal.accounts.models import Membership, User
from portal.accounts.policy import Action
from portal.accounts.requesters import requesters_of
from portal.core.errors import Forbidden, NotFound


class ApproverRights:
    """The person's roles and the leads who delegated to them, read in two queries; each requester is read once."""

    def __init__(self, actor: User) -> None:
        self._actor = actor
        memberships = (
            Membership.objects.filter(user=actor) if actor.is_active else Membership.objects.none()
        )
        self._roles = dict(memberships.values_list("team_id", "role"))
        self._delegating_leads: dict[int, list[int]] = {}
        self._requesters: dict[int, frozenset[int]] = {}
        rows = policy.running_delegations().filter(delegate=actor, team__in=list(self._roles))
        for team_id, lead_id in rows.values_list("team_id", "lead_id"):
            self._delegating_leads.setdefault(team_id, []).append(lead_id)

    @property
    def is_admin(self) -> bool:
        return self._actor.is_platform_admin and self._actor.is_active

    def role_in(self, team_id: int) -> str | None:
        """As a member of the team; an admin need not be one."""
        return self._roles.get(team_id)

    def delegating_leads(self, team_id: int, requester: User) -> list[int]:
        """Ids of leads for whom the person may approve what this requester asks for, by age of the delegation."""
        leads = self._delegating_leads.get(team_id, [])
        return [lead_id for lead_id in leads if lead_id not in self.requesters_of(requester)]

    def requesters_of(self, requester: User) -> frozenset[int]:
        if requester.pk not in self._requesters:
            self._requesters[requester.pk] = requesters_of(requester)
        return self._requesters[requester.pk]

    def may_approve(self, team_id: int, requester: User) -> bool:
        """As `policy.is_allowed` with Action.APPROVE, of a team that the actor may see."""
        standing = policy.Standing(
            policy.ADMIN if self.is_admin else self.role_in(team_id),
            lambda: self._delegating_leads.get(team_id, []),
            lambda: self.requesters_of(requester),
        )
        try:
            policy.require_standing(
                self._actor,
                Action.APPROVE,
                standing,
                team=str(team_id),
                requester_id=requester.pk,
            )
        except (NotFound, Forbidden):
            return False
        return True
