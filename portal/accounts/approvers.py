"""The rights of one person to approve, for any number of teams and requesters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from portal.accounts import four_eyes, policy
from portal.accounts.models import Membership, User
from portal.accounts.policy import Action
from portal.core.errors import Forbidden, NotFound


class ApproverRights:
    """The person's roles, the leads who delegated to them, and who counts as one person with each of these: read
    once, and when something depends on it. Every page asks for them.
    """

    def __init__(self, actor: User) -> None:
        self._actor = actor

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
        """Return the person's role as a member of the team. None if they are no member, which an admin need not be."""
        return self._roles.get(team_id)

    def delegating_leads(self, team_id: int, requester_id: int) -> list[int]:
        """Return the ids of leads for whom the person may approve this requester's requests, by age of the
        delegation.
        """
        leads = self._delegating_leads.get(team_id, [])
        return [lead_id for lead_id in leads if requester_id not in self._people[lead_id]]

    def is_one_person_with(self, user_id: int) -> bool:
        return user_id in self.one_person

    @property
    def one_person(self) -> frozenset[int]:
        """The ids of the accounts that count as one person with this one."""
        return self._people[self._actor.pk]

    @cached_property
    def _people(self) -> Mapping[int, frozenset[int]]:
        """Map the person and the leads who delegated to them to the accounts that count as each."""
        leads = [lead_id for ids in self._delegating_leads.values() for lead_id in ids]
        return four_eyes.map_counterparts([self._actor.pk, *leads])

    def _requesters(self, requester_id: int) -> frozenset[int]:
        """Return who of these accounts counts as one person with the requester."""
        return frozenset(pk for pk, people in self._people.items() if requester_id in people)

    def may_approve(self, team_id: int, requester: User) -> bool:
        """Return whether the person may approve, as `policy.is_allowed` does with Action.APPROVE, in a team that
        the actor may see.
        """
        rights = policy.TeamRights(
            policy.ADMIN if self.is_admin else self.role_in(team_id),
            lambda: self._delegating_leads.get(team_id, []),
            lambda: self._requesters(requester.pk),
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
