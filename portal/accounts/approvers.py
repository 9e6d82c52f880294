"""What one person may approve, for any number of teams and requesters."""

from __future__ import annotations

from functools import cached_property

from portal.accounts import policy
from portal.accounts.models import Membership, User
from portal.accounts.policy import Action
from portal.accounts.requesters import requesters_of
from portal.core.errors import Forbidden, NotFound


class ApproverRights:
    """The person's roles and the leads who delegated to them, each read once and when something depends on it, as
    the requesters are: every page asks for them.
    """

    def __init__(self, actor: User) -> None:
        self._actor = actor
        self._requesters: dict[int, frozenset[int]] = {}

    @cached_property
    def _roles(self) -> dict[int, str]:
        if not self._actor.is_active:
            return {}
        memberships = Membership.objects.filter(user=self._actor)
        return dict(memberships.values_list("team_id", "role"))

    @cached_property
    def _delegating_leads(self) -> dict[int, list[int]]:
        leads: dict[int, list[int]] = {}
        rows = policy.running_delegations().filter(delegate=self._actor, team__in=list(self._roles))
        for team_id, lead_id in rows.values_list("team_id", "lead_id"):
            leads.setdefault(team_id, []).append(lead_id)
        return leads

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
        rights = policy.TeamRights(
            policy.ADMIN if self.is_admin else self.role_in(team_id),
            lambda: self._delegating_leads.get(team_id, []),
            lambda: self.requesters_of(requester),
        )
        try:
            policy.require_with_rights(
                self._actor,
                Action.APPROVE,
                rights,
                team=str(team_id),
                requester_id=requester.pk,
            )
        except (NotFound, Forbidden):
            return False
        return True
