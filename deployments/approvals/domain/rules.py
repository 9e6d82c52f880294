"""The people who must approve a change: pure matching of rules, and counting of approvals against them.

Every rule that matches must be satisfied, so the strictest wins and adding a rule never loosens.
The default is always among them: one lead or admin who did not request the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Final

from deployments.approvals.domain.approver_roles import ApproverRole, RequiredRole
from deployments.approvals.domain.requirement import Person, Requirement
from portal.core.definitions.figures import format_money

MOST_NEEDED: Final = 5

_ROLES_OF: Final[Mapping[RequiredRole, frozenset[ApproverRole]]] = {
    RequiredRole.LEAD: frozenset({ApproverRole.LEAD, ApproverRole.ADMIN, ApproverRole.DELEGATE}),
    RequiredRole.ADMIN: frozenset({ApproverRole.ADMIN}),
    RequiredRole.NAMED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of approval. Empty tuples and None match anything. `id` is None for the default and for rules of an
    environment.
    """

    id: int | None
    name: str
    team_id: int | None = None
    environments: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    above_month_amount: Decimal | None = None
    gpus: tuple[str, ...] = ()
    # Only for changes after which callers need no key any more.
    only_opening: bool = False
    role: RequiredRole = RequiredRole.LEAD
    people: tuple[Person, ...] = ()
    needed: int = 1


DEFAULT: Final = Rule(id=None, name="Four eyes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFacts:
    """The facts of a change that rules match on. `has_cost` is False for a change that runs nothing."""

    team_id: int
    environment: str
    kind: str
    # Of all nodes that may run it; a rule that names one of them matches.
    instance_types: tuple[str, ...]
    gpu_names: tuple[str, ...]
    has_cost: bool
    # At full scale-out; None: not known.
    month_amount: Decimal | None
    opens_address: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """A person who approves, with their role. A delegate counts as the lead whom they stand for."""

    person_id: int
    role: ApproverRole
    stands_for_id: int | None = None


@dataclass(frozen=True, slots=True)
class ApprovalProgress:
    """The number of approvals that one requirement has."""

    requirement: Requirement
    given: int

    @property
    def missing(self) -> int:
        return max(0, self.requirement.needed - self.given)

    @property
    def description(self) -> str:
        """The state of the requirement in words: "0 of 2 approvals by a lead or platform admin", or "2 of 2
        approvals given".
        """
        needed = self.requirement.needed
        count = f"{min(self.given, needed)} of {needed} approval{'' if needed == 1 else 's'}"
        return f"{count} by {self.requirement.who}" if self.missing else f"{count} given"


def requirements(rules: Iterable[Rule], facts: ChangeFacts) -> tuple[Requirement, ...]:
    """Return the requirements of all matching rules, the strictest first. A requirement that another one implies is
    left out.
    """
    matching = [_require(rule, facts) for rule in (DEFAULT, *rules) if matches(rule, facts)]
    matching.sort(key=_strictness, reverse=True)
    kept: list[Requirement] = []
    for requirement in matching:
        if not any(_implies(stricter, requirement) for stricter in kept):
            kept.append(requirement)
    return tuple(kept)


def matches(rule: Rule, facts: ChangeFacts) -> bool:
    return (
        rule.team_id in (None, facts.team_id)
        and (not rule.environments or facts.environment in rule.environments)
        and (not rule.kinds or facts.kind in rule.kinds)
        and (facts.opens_address or not rule.only_opening)
        and _is_above(rule, facts)
        and (not rule.gpus or any(_names_gpu(pattern, facts) for pattern in rule.gpus))
    )


def counts_for(requirement: Requirement, approver: Approver, *, requester_id: int) -> bool:
    """Whether an approval counts: never the requester's own, nor one given on the requester's
    authority.
    """
    if approver.person_id == requester_id:
        return False
    if _is_named(requirement, approver):
        return True
    has_role = approver.role in _ROLES_OF[requirement.role]
    return has_role and approver.stands_for_id != requester_id


def progress_of(
    required: Iterable[Requirement], approvers: Iterable[Approver], *, requester_id: int
) -> tuple[ApprovalProgress, ...]:
    """Return how far each requirement is met. Approvals on the same authority count once; one approval may count
    for several rules.
    """
    given = tuple(approvers)
    return tuple(
        ApprovalProgress(requirement, len(_authorities(requirement, given, requester_id)))
        for requirement in required
    )


def is_satisfied(rows: Sequence[ApprovalProgress]) -> bool:
    """Whether every requirement is met. False without any requirement: nothing is approved without a rule."""
    return bool(rows) and all(row.missing == 0 for row in rows)


def would_help(
    rows: Iterable[ApprovalProgress],
    approvers: Iterable[Approver],
    candidate: Approver,
    *,
    requester_id: int,
    one_person: frozenset[int] = frozenset(),
) -> bool:
    """Whether an approval by `candidate` brings an unmet requirement any further. Approvals by accounts of
    `one_person` are the candidate's own.
    """
    given = tuple(approvers)
    same = [approver for approver in given if _is_by(approver, one_person)]
    return any(
        row.missing > 0
        and counts_for(row.requirement, candidate, requester_id=requester_id)
        and _authority(row.requirement, candidate)
        not in _authorities(row.requirement, given, requester_id)
        and not _authorities(row.requirement, same, requester_id)
        for row in rows
    )


def _is_by(approver: Approver, people: frozenset[int]) -> bool:
    """Whether one of these people approved, or another did on their authority."""
    return not people.isdisjoint({approver.person_id, approver.stands_for_id})


def _authorities(
    requirement: Requirement, approvers: Iterable[Approver], requester_id: int
) -> set[int]:
    return {
        _authority(requirement, approver)
        for approver in approvers
        if counts_for(requirement, approver, requester_id=requester_id)
    }


def _require(rule: Rule, facts: ChangeFacts) -> Requirement:
    return Requirement(
        rule_id=rule.id,
        rule=rule.name,
        role=rule.role,
        people=rule.people,
        needed=rule.needed,
        why=_why(rule, facts),
    )


def _why(rule: Rule, facts: ChangeFacts) -> str:
    if rule == DEFAULT:
        return "someone other than the requester approves every change"
    parts = ["every change"] if not rule.kinds else [f"a {facts.kind.replace('_', ' ')}"]
    if rule.team_id is not None:
        parts.append("of this team")
    if rule.environments:
        parts.append(f"in {facts.environment}")
    if rule.gpus:
        parts.append(f"on {' or '.join(facts.gpu_names or facts.instance_types)}")
    if rule.only_opening:
        parts.append("that opens an address to everyone")
    if rule.above_month_amount is not None:
        parts.append(_describe_amount(rule.above_month_amount, facts.month_amount))
    return " ".join(parts)


def _describe_amount(limit: Decimal, amount: Decimal | None) -> str:
    if amount is None:
        return f"with an unknown price (may be above {format_money(limit)} a month)"
    return f"that may cost {format_money(amount)} a month, above {format_money(limit)}"


def _is_above(rule: Rule, facts: ChangeFacts) -> bool:
    """Whether the cost is above the rule's amount. A price that is not known counts as above."""
    if rule.above_month_amount is None:
        return True
    if not facts.has_cost:
        return False
    return facts.month_amount is None or facts.month_amount > rule.above_month_amount


def _names_gpu(pattern: str, facts: ChangeFacts) -> bool:
    lowered = pattern.lower()
    gpus = [name.lower() for name in facts.gpu_names]
    # "h100" names NVIDIA-H100-80GB-HBM3 too; an instance type is written out or has a *.
    if any(fnmatchcase(gpu, lowered) or lowered in gpu for gpu in gpus):
        return True
    return any(fnmatchcase(name.lower(), lowered) for name in facts.instance_types)


def _is_named(requirement: Requirement, approver: Approver) -> bool:
    return approver.person_id in {person.id for person in requirement.people}


def _authority(requirement: Requirement, approver: Approver) -> int:
    if _is_named(requirement, approver) or approver.stands_for_id is None:
        return approver.person_id
    return approver.stands_for_id


_RANK: Final = {RequiredRole.LEAD: 0, RequiredRole.ADMIN: 1, RequiredRole.NAMED: 2}


def _strictness(required: Requirement) -> tuple[int, int, int, str]:
    return (required.needed, _RANK[required.role], -len(required.people), required.rule)


def _implies(strict: Requirement, loose: Requirement) -> bool:
    """Whether `strict` implies `loose`: fewer people may satisfy it, and more must."""
    people = {person.id for person in strict.people} <= {person.id for person in loose.people}
    return (
        strict.needed >= loose.needed and people and _ROLES_OF[strict.role] <= _ROLES_OF[loose.role]
    )
