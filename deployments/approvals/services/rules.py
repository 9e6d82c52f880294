"""Create, change and delete approval rules. For platform admins."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.db import IntegrityError, transaction

from deployments import audit_actions
from deployments.approvals.domain.approver_roles import RequiredRole
from deployments.approvals.domain.rules import MOST_NEEDED
from deployments.models import ApprovalRule, ChangeRequest
from deployments.states import ChangeKind, ChangeState, Environment
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import Team, User
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

# Promotions are decided on the rollout's own page.
KINDS: Final = tuple(kind for kind in ChangeKind if kind != ChangeKind.PROMOTE)
_UNDECIDED: Final = (ChangeState.SUBMITTED, ChangeState.APPROVED)
_MOST_PATTERNS = 20
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDraft:
    """The fields of a rule. Empty means any; `people` are sign-in names."""

    name: str
    team: str = ""
    environments: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    above_month_amount: Decimal | None = None
    gpus: tuple[str, ...] = ()
    only_opening: bool = False
    role: str = RequiredRole.LEAD
    people: tuple[str, ...] = ()
    needed: int = 1
    is_enabled: bool = True


def make(*, actor: User, draft: RuleDraft) -> ApprovalRule:
    """Create a rule. Raises Forbidden for anyone but a platform admin, and Invalid with the fields that are wrong."""
    policy.require_platform_admin(actor)
    step_up.require(actor)
    team, people = _check(draft)
    at = clock.now()
    row = ApprovalRule(created_at=at)
    with transaction.atomic():
        _write(row, draft, team, people)
        trail.record(
            actor=actor,
            action=audit_actions.RULE_MADE,
            obj=row,
            team_slug=draft.team,
            after=audit_values(row),
        )
        _reevaluate_requests(row)
    return row


def change(*, actor: User, rule_id: int, draft: RuleDraft) -> ApprovalRule:
    """Change a rule. Approvals given under the old rule become void where it applies."""
    policy.require_platform_admin(actor)
    step_up.require(actor)
    row = get(rule_id)
    before = audit_values(row)
    team, people = _check(draft)
    with transaction.atomic():
        _reevaluate_requests(row)
        _write(row, draft, team, people)
        trail.record(
            actor=actor,
            action=audit_actions.RULE_CHANGED,
            obj=row,
            team_slug=draft.team,
            before=before,
            after=audit_values(row),
        )
        _reevaluate_requests(row)
    return row


def delete(*, actor: User, rule_id: int) -> None:
    """Delete a rule; decided requests keep a copy of it. Raises NotFound, and Conflict while open requests require
    it.
    """
    policy.require_platform_admin(actor)
    step_up.require(actor)
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
            team_slug=row.team.slug if row.team else "",
            before=audit_values(row),
        )
        row.delete()


def _waiting_for(row: ApprovalRule) -> int:
    rows = ChangeRequest.objects.filter(state__in=_UNDECIDED).values_list("required", flat=True)
    return sum(any(rule["rule_id"] == row.pk for rule in required) for required in rows)


def get(rule_id: int) -> ApprovalRule:
    rows = ApprovalRule.objects.select_related("team").prefetch_related("people")
    row = rows.filter(pk=rule_id).first()
    if row is None:
        raise NotFound(f"There is no approval rule {rule_id}.")
    return row


def draft_of(row: ApprovalRule) -> RuleDraft:
    return RuleDraft(
        name=row.name,
        team=row.team.slug if row.team else "",
        environments=tuple(row.environments),
        kinds=tuple(row.kinds),
        above_month_amount=row.above_month_amount,
        gpus=tuple(row.gpus),
        only_opening=row.only_opening,
        role=row.role,
        people=tuple(sorted(person.username for person in row.people.all())),
        needed=row.needed,
        is_enabled=row.is_enabled,
    )


def audit_values(row: ApprovalRule) -> dict[str, Any]:
    draft = draft_of(row)
    amount = draft.above_month_amount
    return {
        "team": draft.team or "all teams",
        "environments": list(draft.environments),
        "kinds": list(draft.kinds),
        "above_month_amount": None if amount is None else str(amount),
        "gpus": list(draft.gpus),
        "only_opening": draft.only_opening,
        "role": str(draft.role),
        "people": list(draft.people),
        "needed": draft.needed,
        "is_enabled": draft.is_enabled,
    }


def _check(draft: RuleDraft) -> tuple[Team | None, list[User]]:
    problems = {
        name: problem
        for name, is_valid, problem in (
            ("name", 1 <= len(draft.name.strip()) <= _LONGEST_NAME, "1 to 80 characters"),
            ("environments", set(draft.environments) <= set(Environment), "unknown environment"),
            ("kinds", set(draft.kinds) <= set(KINDS), "unknown kind of change"),
            ("role", draft.role in set(RequiredRole), "lead, admin or named"),
            ("needed", 1 <= draft.needed <= MOST_NEEDED, f"1 to {MOST_NEEDED}"),
            ("above_month_amount", _is_amount(draft.above_month_amount), "0 or more dollars"),
            ("gpus", _are_patterns(draft.gpus), f"at most {_MOST_PATTERNS} names, none empty"),
        )
        if not is_valid
    }
    team = Team.objects.filter(slug=draft.team).first() if draft.team else None
    if draft.team and team is None:
        problems["team"] = f"there is no team {draft.team}"
    people = list(User.objects.filter(username__in=draft.people, is_active=True, service_team=None))
    problem = _problem_with_people(draft, team, people)
    if problem:
        problems["people"] = problem
    if problems:
        raise Invalid(f"Check {', '.join(sorted(problems))} of the rule.", fields=problems)
    return team, people


def _problem_with_people(draft: RuleDraft, team: Team | None, people: list[User]) -> str:
    """Return why nobody could satisfy the rule, which would block every change it applies to. Empty if somebody
    could.
    """
    unknown = sorted(set(draft.people) - {person.username for person in people})
    if unknown:
        return f"there is no {', '.join(unknown)}"
    if team is not None:
        outside = [person.username for person in people if policy.role_in(person, team) is None]
        if outside:
            return f"{', '.join(sorted(outside))} cannot see {team.slug}; add them to the team"
    if draft.role == RequiredRole.NAMED and len(people) < draft.needed:
        return f"name at least {draft.needed} people, or let leads or admins approve too"
    return ""


def _is_amount(amount: Decimal | None) -> bool:
    return amount is None or (amount.is_finite() and 0 <= amount < 10**10)


def _are_patterns(patterns: tuple[str, ...]) -> bool:
    return len(patterns) <= _MOST_PATTERNS and all(1 <= len(name) <= 60 for name in patterns)


def _write(row: ApprovalRule, draft: RuleDraft, team: Team | None, people: list[User]) -> None:
    row.name, row.team, row.role = draft.name.strip(), team, draft.role
    row.environments, row.kinds = list(draft.environments), list(draft.kinds)
    row.gpus, row.needed = list(draft.gpus), draft.needed
    row.only_opening = draft.only_opening
    row.above_month_amount, row.is_enabled = draft.above_month_amount, draft.is_enabled
    row.changed_at = clock.now()
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict(
            f"There is already a rule called “{row.name}”.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error
    row.people.set(people)


def _reevaluate_requests(row: ApprovalRule) -> None:
    """Make undecided requests due now where the rule may apply, so that their pages show it."""
    rows = ChangeRequest.objects.filter(state__in=_UNDECIDED)
    if row.team_id is not None:
        rows = rows.filter(team=row.team_id)
    rows.update(next_check_at=clock.now())
