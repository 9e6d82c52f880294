"""Approval rules as rows, what they require of a change, and how far that is met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet, prefetch_related_objects

from deployments.approvals.domain import requirement, rules
from deployments.approvals.domain.approver_roles import ApproverRole, RequiredRole
from deployments.approvals.domain.requirement import Person, Requirement
from deployments.approvals.domain.rules import (
    ApprovalProgress,
    Approver,
    ChangeFacts,
    Rule,
)
from deployments.approvals.selectors import earlier_approvals
from deployments.approvals.selectors.earlier_approvals import EarlierApproval, approver_of
from deployments.environments.selectors import environment_rules
from deployments.models import Approval, ApprovalRule, ChangeRequest
from deployments.states import ChangeState
from portal.accounts import four_eyes, policy
from portal.accounts.approvers import ApproverRights
from portal.accounts.models import Membership, Role, User
from portal.accounts.policy import Actor
from portal.core import clock

_MOST_NAMES = 6


@dataclass(frozen=True, slots=True)
class ApprovalStatus:
    """The requirements of a change, and how many approvals each has."""

    rows: tuple[ApprovalProgress, ...]
    is_emergency: bool
    # A roll back that the approvals of its revision cover.
    earlier: EarlierApproval | None = None

    @property
    def missing(self) -> int:
        return 0 if self.is_emergency else max((row.missing for row in self.rows), default=0)

    @property
    def is_satisfied(self) -> bool:
        return self.is_emergency or rules.is_satisfied(self.rows)

    @property
    def description(self) -> str:
        """The missing approvals in words: "1 of 2 approvals by a lead or platform admin"."""
        if self.is_emergency:
            return "approved with an emergency override"
        if self.earlier is not None:
            return self.earlier.description
        missing = [row.description for row in self.rows if row.missing]
        return "; ".join(missing) or "; ".join(row.description for row in self.rows)


def list_rules(actor: Actor) -> QuerySet[ApprovalRule]:
    """List rules of the actor's teams and rules of all teams, including disabled rules."""
    rows = ApprovalRule.objects.select_related("team").prefetch_related("people")
    return rows.filter(Q(team=None) | Q(team__in=policy.visible_teams(actor)))


def required_now(facts: ChangeFacts) -> tuple[Requirement, ...]:
    """Return what the enabled rules require of the change now."""
    rows = ApprovalRule.objects.filter(is_enabled=True).prefetch_related("people")
    return rules.requirements([*map(as_rule, rows), *_rules_of_environment(facts)], facts)


def _rules_of_environment(facts: ChangeFacts) -> list[Rule]:
    """Return the rules of the environment that the change enters: the platform's and the team's."""
    layers = environment_rules.layers_of(facts.environment, facts.team_id)
    return [
        Rule(
            id=None,
            name=f"Environment {facts.environment}"
            + (f" of {layer.team.slug}" if layer.team else ""),
            team_id=layer.team.pk if layer.team else None,
            environments=(facts.environment,),
            role=RequiredRole(layer.rules.role),
            needed=layer.rules.approvals,
        )
        for layer in layers
        if layer.is_set
    ]


def as_rule(row: ApprovalRule) -> Rule:
    people = sorted(row.people.all(), key=lambda person: person.username)
    return Rule(
        id=row.pk,
        name=row.name,
        team_id=row.team_id,
        environments=tuple(row.environments),
        kinds=tuple(row.kinds),
        above_month_amount=row.above_month_amount,
        gpus=tuple(row.gpus),
        only_opening=row.only_opening,
        role=RequiredRole(row.role),
        people=tuple(Person(person.pk, person.username) for person in people),
        needed=row.needed,
    )


def required_as_stored(change: ChangeRequest) -> tuple[Requirement, ...]:
    return tuple(requirement.from_json(required) for required in change.required)


def live_approvals(change: ChangeRequest) -> list[Approval]:
    """Return the approvals of the change that are neither void nor expired. They are read once for each `change`
    object.
    """
    if "approvals" not in getattr(change, "_prefetched_objects_cache", {}):
        prefetch_related_objects([change], "approvals")
    return live_of(change.approvals.all())


def live_of(approvals: Iterable[Approval]) -> list[Approval]:
    at = clock.now()
    return [
        approval
        for approval in approvals
        if approval.is_approved
        and not approval.void_reason
        and (approval.expires_at is None or approval.expires_at > at)
    ]


def status_of(change: ChangeRequest) -> ApprovalStatus:
    """Return the approval status by the rules as last evaluated; a decision evaluates them again."""
    given = _given_status_of(change)
    return given if change.state == ChangeState.SUBMITTED else _or_earlier(change, given)


def status_at_request(change: ChangeRequest) -> ApprovalStatus:
    """Return the status of a request that is being made, to which earlier approvals may count. Its requester is the
    actor, with the token that the request came by; later nothing tells what that token could.
    """
    return _or_earlier(change, _given_status_of(change))


def _given_status_of(change: ChangeRequest) -> ApprovalStatus:
    live, required = live_approvals(change), required_as_stored(change)
    rows = rules.progress_of(required, map(approver_of, live), requester_id=change.requester_id)
    return ApprovalStatus(rows, is_emergency=any(approval.is_emergency for approval in live))


def _or_earlier(change: ChangeRequest, status: ApprovalStatus) -> ApprovalStatus:
    if status.is_satisfied:
        return status
    required = required_as_stored(change)
    earlier = earlier_approvals.find_for(change, required, actor=change.requester)
    return (
        status
        if earlier is None
        else ApprovalStatus(earlier.rows, is_emergency=False, earlier=earlier)
    )


class ApproverContext:
    """The role in which one person may approve, for any number of changes in two queries.

    `live` of a change: its live approvals where they were read already.
    """

    def __init__(self, actor: User, rights: ApproverRights | None = None) -> None:
        self._actor = actor
        self._rights = rights or ApproverRights(actor)

    def approver_for(
        self, change: ChangeRequest, live: Sequence[Approval] | None = None
    ) -> Approver | None:
        """Return the role in which the person may approve the change.

        None if no rule allows it. A service account never may, even if a rule names it.
        """
        actor = self._actor
        if actor.is_service_account:
            return None
        if self._rights.is_admin:
            return Approver(person_id=actor.pk, role=ApproverRole.ADMIN)
        role = self._rights.role_in(change.team_id)
        if role is None:
            return None
        if role == Role.LEAD:
            return Approver(person_id=actor.pk, role=ApproverRole.LEAD)
        lead_id = self._lead_for(change, live)
        if lead_id is not None:
            return Approver(person_id=actor.pk, role=ApproverRole.DELEGATE, stands_for_id=lead_id)
        named = {person.id for rule in required_as_stored(change) for person in rule.people}
        return Approver(person_id=actor.pk, role=ApproverRole.NAMED) if actor.pk in named else None

    def is_waiting_for_actor(
        self, change: ChangeRequest, live: Sequence[Approval] | None = None
    ) -> bool:
        """Whether an approval by this person is missing."""
        approver = self.approver_for(change, live)
        if approver is None or self._rights.is_one_person_with(change.requester_id):
            return False
        live = live_approvals(change) if live is None else live
        has_approved = any(row.user_id == self._actor.pk for row in live)
        return not has_approved and _would_help(change, approver, live, self._rights.one_person)

    def _lead_for(self, change: ChangeRequest, live: Sequence[Approval] | None) -> int | None:
        """Return a delegating lead who did not request the change, preferring those who have not approved. None if
        there is none.
        """
        leads = self._rights.delegating_leads(change.team_id, change.requester_id)
        live = live_approvals(change) if live is None else live
        used = {row.stands_for_id or row.user_id for row in live}
        return next((lead_id for lead_id in leads if lead_id not in used), next(iter(leads), None))


def is_counting(change: ChangeRequest, approver: Approver) -> bool:
    """Whether this approval would bring the change further."""
    one_person = four_eyes.one_person_with(approver.person_id)
    return _would_help(change, approver, live_approvals(change), one_person)


def _would_help(
    change: ChangeRequest, approver: Approver, live: Iterable[Approval], one_person: frozenset[int]
) -> bool:
    """Whether an approval by `approver` would help. Approvals by accounts of `one_person` are the approver's own."""
    given, requester_id = [approver_of(row) for row in live], change.requester_id
    rows = rules.progress_of(required_as_stored(change), given, requester_id=requester_id)
    return rules.would_help(rows, given, approver, requester_id=requester_id, one_person=one_person)


def people_still_needed(change: ChangeRequest) -> list[User]:
    """Return the people who may give the missing approvals.

    Platform admins, who may approve for leads too, are named only if the team's own leads are not enough.
    """
    rows = [row for row in status_of(change).rows if row.missing]
    if not rows or change.state != ChangeState.SUBMITTED:
        return []
    roles = {row.requirement.role for row in rows}
    named = {person.id for row in rows for person in row.requirement.people}
    team = Q(pk__in=named)
    if RequiredRole.LEAD in roles:
        leads = Membership.objects.filter(team=change.team_id, role=Role.LEAD)
        team |= Q(pk__in=leads.values("user"))
    approved = {row.user_id for row in live_approvals(change)}
    excluded = approved | four_eyes.one_person_with(change.requester_id)
    active = User.objects.filter(is_active=True, service_team=None)
    others = active.exclude(pk__in=excluded).order_by("username")
    people = list(others.filter(team)[:_MOST_NAMES])
    is_short = len(people) < max(row.missing for row in rows)
    if RequiredRole.ADMIN in roles or (RequiredRole.LEAD in roles and is_short):
        known = [person.pk for person in people]
        people += others.filter(is_platform_admin=True).exclude(pk__in=known)[:_MOST_NAMES]
    return people
