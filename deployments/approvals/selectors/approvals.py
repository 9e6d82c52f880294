"""Rules of approval as rows, what they ask of one change, and how far that is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from django.db.models import Q, QuerySet

from deployments.approvals.domain import rules as approvals
from deployments.approvals.domain.rules import (
    ApproverRole,
    Capacity,
    Given,
    Progress,
    Requirement,
    Rule,
)
from deployments.models import ApprovalRule, ChangeRequest, GivenApproval
from deployments.states import ChangeState
from portal.accounts import policy
from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.policy import Actor
from portal.core import clock

_MOST_NAMES = 6


class Decidable(Protocol):
    """What waits for approvals: a change of a deployment, or of a pipeline."""

    pk: Any
    state: Any
    requester_id: Any
    required: Any

    @property
    def team(self) -> Team: ...

    @property
    def approvals(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What a change needs, and what of it was given."""

    rows: tuple[Progress, ...]
    is_emergency: bool

    @property
    def missing(self) -> int:
        return 0 if self.is_emergency else max((row.missing for row in self.rows), default=0)

    @property
    def is_satisfied(self) -> bool:
        return self.is_emergency or (bool(self.rows) and self.missing == 0)

    @property
    def words(self) -> str:
        """For example "1 of 2 approvals by a lead or platform admin"."""
        if self.is_emergency:
            return "approved with an emergency override"
        wanted = [row.words for row in self.rows if row.missing]
        return "; ".join(wanted) or "; ".join(row.words for row in self.rows)


def list_rules(actor: Actor) -> QuerySet[ApprovalRule]:
    """Those of the actor's teams and those of all teams, disabled ones too."""
    rows = ApprovalRule.objects.select_related("team").prefetch_related("people")
    return rows.filter(Q(team=None) | Q(team__in=policy.visible_teams(actor)))


def enabled_rules() -> tuple[Rule, ...]:
    rows = ApprovalRule.objects.filter(is_enabled=True).prefetch_related("people")
    return tuple(as_rule(row) for row in rows)


def as_rule(row: ApprovalRule) -> Rule:
    people = sorted(row.people.all(), key=lambda one: one.username)
    return Rule(
        id=row.pk,
        name=row.name,
        team_id=row.team_id,
        environments=tuple(row.environments),
        kinds=tuple(row.kinds),
        above_month_amount=row.above_month_amount,
        gpus=tuple(row.gpus),
        role=approvals.ApproverRole(row.role),
        people=tuple(approvals.Person(one.pk, one.username) for one in people),
        needed=row.needed,
    )


def required_now(change: ChangeRequest) -> tuple[Requirement, ...]:
    """What the rules ask for as they are at this moment."""
    return approvals.requirements(enabled_rules(), subject_of(change))


def required_as_stored(change: Decidable) -> tuple[Requirement, ...]:
    return tuple(approvals.requirement_from_json(one) for one in change.required)


def subject_of(change: ChangeRequest) -> approvals.Subject:
    """A change that only removes is looked at by the GPUs of what serves, and has no cost."""
    deployment = change.deployment
    revision = change.revision or deployment.stable_revision
    amount = change.cost.get("month_max")
    return approvals.Subject(
        team_id=deployment.team_id,
        environment=deployment.environment,
        kind=change.kind,
        instance_type=revision.spec["instance_type"] if revision else "",
        gpu_name=change.gpu_name,
        has_cost=change.revision is not None,
        month_amount=None if amount is None else Decimal(amount),
    )


def live_approvals(change: Decidable) -> list[GivenApproval]:
    """Neither void nor expired; from what was prefetched where that was done."""
    at = clock.now()
    given: Iterable[GivenApproval] = change.approvals.all()
    return [
        one
        for one in given
        if one.is_approved
        and not one.void_reason
        and (one.expires_at is None or one.expires_at > at)
    ]


def standing_of(change: Decidable) -> Standing:
    """By the rules as they were last looked at; what is decided looks at them anew."""
    live = live_approvals(change)
    rows = approvals.progress_of(
        required_as_stored(change), map(as_given, live), requester_id=change.requester_id
    )
    return Standing(rows, is_emergency=any(one.is_emergency for one in live))


def as_given(approval: GivenApproval) -> Given:
    return Given(
        person_id=approval.user_id,
        capacity=Capacity(approval.as_role),
        stands_for_id=approval.stands_for_id,
    )


class Desk:
    """In which capacity one person may approve, for any number of changes in two queries."""

    def __init__(self, actor: User) -> None:
        self._actor = actor
        mine = (
            Membership.objects.filter(user=actor) if actor.is_active else Membership.objects.none()
        )
        self._roles = dict(mine.values_list("team_id", "role"))
        self._places: dict[int, list[int]] = {}
        rows = policy.running_delegations().filter(delegate=actor, team__in=list(self._roles))
        for team_id, lead_id in rows.values_list("team_id", "lead_id"):
            self._places.setdefault(team_id, []).append(lead_id)

    def capacity(self, change: Decidable) -> Given | None:
        """As what the person may approve now; None when no rule lets them."""
        team_id = change.team.pk
        if self._actor.is_platform_admin and self._actor.is_active:
            return Given(person_id=self._actor.pk, capacity=Capacity.ADMIN)
        role = self._roles.get(team_id)
        if role is None:
            return None
        if role == Role.LEAD:
            return Given(person_id=self._actor.pk, capacity=Capacity.LEAD)
        lead_id = self._free_place(change)
        if lead_id is not None:
            return Given(
                person_id=self._actor.pk, capacity=Capacity.DELEGATE, stands_for_id=lead_id
            )
        named = {person.id for one in required_as_stored(change) for person in one.people}
        is_named = self._actor.pk in named
        return Given(person_id=self._actor.pk, capacity=Capacity.NAMED) if is_named else None

    def is_wanted(self, change: Decidable) -> bool:
        """Whether it waits for this very person, among others."""
        by = self.capacity(change)
        if by is None or self._actor.pk == change.requester_id:
            return False
        has_approved = any(one.user_id == self._actor.pk for one in live_approvals(change))
        return not has_approved and whose_turn(change, by)

    def _free_place(self, change: Decidable) -> int | None:
        """A lead's place that did not ask for the change; better one that has not approved yet."""
        places = self._places.get(change.team.pk, [])
        leads = [lead_id for lead_id in places if lead_id != change.requester_id]
        used = {one.stands_for_id or one.user_id for one in live_approvals(change)}
        return next((lead_id for lead_id in leads if lead_id not in used), next(iter(leads), None))


def whose_turn(change: Decidable, by: Given) -> bool:
    """Whether this approval would bring the change further."""
    given = [as_given(one) for one in live_approvals(change)]
    rows = standing_of(change).rows
    return approvals.would_help(rows, given, by, requester_id=change.requester_id)


def people_still_needed(change: Decidable) -> list[User]:
    """Who may give what is missing. Platform admins, who may approve for leads too, are named only
    where the team's own leads are not enough.
    """
    rows = [row for row in standing_of(change).rows if row.missing]
    if not rows or change.state != ChangeState.SUBMITTED:
        return []
    roles = {row.requirement.role for row in rows}
    named = {person.id for row in rows for person in row.requirement.people}
    team = Q(pk__in=named)
    if ApproverRole.LEAD in roles:
        leads = Membership.objects.filter(team=change.team, role=Role.LEAD)
        team |= Q(pk__in=leads.values("user"))
    have = {one.user_id for one in live_approvals(change)} | {change.requester_id}
    others = User.objects.filter(is_active=True).exclude(pk__in=have).order_by("username")
    found = list(others.filter(team)[:_MOST_NAMES])
    is_short = len(found) < max(row.missing for row in rows)
    if ApproverRole.ADMIN in roles or (ApproverRole.LEAD in roles and is_short):
        known = [person.pk for person in found]
        found += others.filter(is_platform_admin=True).exclude(pk__in=known)[:_MOST_NAMES]
    return found
