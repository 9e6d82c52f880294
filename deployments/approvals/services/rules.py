"""Platform admins write down who must approve what."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Q

from deployments import audit_actions
from deployments.approvals.domain.rules import MOST_NEEDED, ApproverRole
from deployments.models import ApprovalRule, ChangeRequest, PipelineChange
from deployments.states import ChangeKind, ChangeState, Environment
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

# Promotions are decided on the rollout's own page.
KINDS: Final = tuple(kind for kind in ChangeKind if kind != ChangeKind.PROMOTE)
_MOST_PATTERNS = 20
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDraft:
    """What an admin fills in. Empty means any; `people` are sign-in names."""

    name: str
    team: str = ""
    environments: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    above_month_amount: Decimal | None = None
    gpus: tuple[str, ...] = ()
    role: str = ApproverRole.LEAD
    people: tuple[str, ...] = ()
    needed: int = 1
    is_enabled: bool = True


def make(*, actor: User, draft: RuleDraft) -> ApprovalRule:
    """Raises Forbidden for who is no platform admin, Invalid with the fields that are wrong."""
    policy.require_platform_admin(actor)
    team, people = _check(draft)
    at = clock.now()
    row = ApprovalRule(created_at=at)
    with transaction.atomic():
        _write(row, draft, team, people)
        trail.record(
            actor=actor,
            action=audit_actions.RULE_MADE,
            obj=row,
            label=row.name,
            team_slug=draft.team,
            after=told(row),
        )
        _look_again(row)
    return row


def change(*, actor: User, rule_id: int, draft: RuleDraft) -> ApprovalRule:
    """Approvals given under the earlier wording become void where the rule applies."""
    policy.require_platform_admin(actor)
    row = get(rule_id)
    before = told(row)
    team, people = _check(draft)
    with transaction.atomic():
        _look_again(row)
        _write(row, draft, team, people)
        trail.record(
            actor=actor,
            action=audit_actions.RULE_CHANGED,
            obj=row,
            label=row.name,
            team_slug=draft.team,
            before=before,
            after=told(row),
        )
        _look_again(row)
    return row


def delete(*, actor: User, rule_id: int) -> None:
    """Raises NotFound, and Conflict while open requests wait for it: decided ones keep its wording."""
    policy.require_platform_admin(actor)
    row = get(rule_id)
    with transaction.atomic():
        ApprovalRule.objects.select_for_update().filter(pk=row.pk).first()
        waiting = _waiting_for(row)
        if waiting:
            requests = f"{waiting} open requests need" if waiting > 1 else "1 open request needs"
            raise Conflict(
                f"{row.name} cannot be deleted: {requests} its approval. Decide first, or "
                "disable the rule.",
                code="rule_in_use",
            )
        trail.record(
            actor=actor,
            action=audit_actions.RULE_DELETED,
            obj=row,
            label=row.name,
            team_slug=row.team.slug if row.team else "",
            before=told(row),
        )
        row.delete()


def _waiting_for(row: ApprovalRule) -> int:
    is_open = Q(state__in=(ChangeState.SUBMITTED, ChangeState.APPROVED))
    lists = [
        *ChangeRequest.objects.filter(is_open).values_list("required", flat=True),
        *PipelineChange.objects.filter(is_open).values_list("required", flat=True),
    ]
    return sum(any(one["rule_id"] == row.pk for one in required) for required in lists)


def get(rule_id: int) -> ApprovalRule:
    rows = ApprovalRule.objects.select_related("team").prefetch_related("people")
    found = rows.filter(pk=rule_id).first()
    if found is None:
        raise NotFound(f"There is no approval rule {rule_id}.")
    return found


def draft_of(row: ApprovalRule) -> RuleDraft:
    return RuleDraft(
        name=row.name,
        team=row.team.slug if row.team else "",
        environments=tuple(row.environments),
        kinds=tuple(row.kinds),
        above_month_amount=row.above_month_amount,
        gpus=tuple(row.gpus),
        role=row.role,
        people=tuple(sorted(person.username for person in row.people.all())),
        needed=row.needed,
        is_enabled=row.is_enabled,
    )


def told(row: ApprovalRule) -> dict[str, Any]:
    """For the audit trail."""
    draft = draft_of(row)
    amount = draft.above_month_amount
    return {
        "team": draft.team or "all teams",
        "environments": list(draft.environments),
        "kinds": list(draft.kinds),
        "above_month_amount": None if amount is None else str(amount),
        "gpus": list(draft.gpus),
        "role": str(draft.role),
        "people": list(draft.people),
        "needed": draft.needed,
        "is_enabled": draft.is_enabled,
    }


def _check(draft: RuleDraft) -> tuple[Team | None, list[User]]:
    found = {
        name: words
        for name, is_right, words in (
            ("name", 1 <= len(draft.name.strip()) <= _LONGEST_NAME, "1 to 80 characters"),
            ("environments", set(draft.environments) <= set(Environment), "unknown environment"),
            ("kinds", set(draft.kinds) <= set(KINDS), "unknown kind of change"),
            ("role", draft.role in set(ApproverRole), "lead, admin or named"),
            ("needed", 1 <= draft.needed <= MOST_NEEDED, f"1 to {MOST_NEEDED}"),
            ("above_month_amount", _is_amount(draft.above_month_amount), "0 or more dollars"),
            ("gpus", _are_patterns(draft.gpus), f"at most {_MOST_PATTERNS} names, none empty"),
        )
        if not is_right
    }
    team = Team.objects.filter(slug=draft.team).first() if draft.team else None
    if draft.team and team is None:
        found["team"] = f"there is no team {draft.team}"
    people = list(User.objects.filter(username__in=draft.people, is_active=True))
    problem = _wrong_people(draft, team, people)
    if problem:
        found["people"] = problem
    if found:
        raise Invalid(f"Check {', '.join(sorted(found))} of the rule.", fields=found)
    return team, people


def _wrong_people(draft: RuleDraft, team: Team | None, people: list[User]) -> str:
    """A rule that nobody could satisfy would stop every change it applies to."""
    unknown = sorted(set(draft.people) - {person.username for person in people})
    if unknown:
        return f"there is no {', '.join(unknown)}"
    if team is not None:
        outside = [one.username for one in people if policy.role_in(one, team) is None]
        if outside:
            return f"{', '.join(sorted(outside))} cannot see {team.slug}; add them to the team"
    if draft.role == ApproverRole.NAMED and len(people) < draft.needed:
        return f"name at least {draft.needed} people, or let leads or admins approve too"
    return ""


def _is_amount(amount: Decimal | None) -> bool:
    return amount is None or (amount.is_finite() and 0 <= amount < 10**10)


def _are_patterns(patterns: tuple[str, ...]) -> bool:
    return len(patterns) <= _MOST_PATTERNS and all(1 <= len(one) <= 60 for one in patterns)


def _write(row: ApprovalRule, draft: RuleDraft, team: Team | None, people: list[User]) -> None:
    row.name, row.team, row.role = draft.name.strip(), team, draft.role
    row.environments, row.kinds = list(draft.environments), list(draft.kinds)
    row.gpus, row.needed = list(draft.gpus), draft.needed
    row.above_month_amount, row.is_enabled = draft.above_month_amount, draft.is_enabled
    row.changed_at = clock.now()
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict(
            f"There is already a rule called {row.name!r}.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error
    row.people.set(people)


def _look_again(row: ApprovalRule) -> None:
    """Requests it may apply to are looked at now, so that nobody decides on what has changed."""
    rows = ChangeRequest.objects.filter(
        Q(state=ChangeState.SUBMITTED) | Q(state=ChangeState.APPROVED)
    )
    if row.team_id is not None:
        rows = rows.filter(deployment__team=row.team_id)
    rows.update(next_check_at=clock.now())
