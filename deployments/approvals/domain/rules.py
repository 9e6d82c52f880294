"""Who must approve a change: pure matching of rules, and counting of approvals against them.

Every rule that matches must be satisfied, so the strictest wins and adding a rule never loosens.
The default is always among them: one lead or admin who did not ask for the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

MOST_NEEDED: Final = 5


class ApproverRole(StrEnum):
    """Who may give an approval besides the people that the rule names."""

    LEAD = "lead"
    ADMIN = "admin"
    NAMED = "named"


class Capacity(StrEnum):
    """As what someone approved."""

    LEAD = "lead"
    ADMIN = "admin"
    DELEGATE = "delegate"
    NAMED = "named"


_GIVES: Final[Mapping[ApproverRole, frozenset[Capacity]]] = {
    ApproverRole.LEAD: frozenset({Capacity.LEAD, Capacity.ADMIN, Capacity.DELEGATE}),
    ApproverRole.ADMIN: frozenset({Capacity.ADMIN}),
    ApproverRole.NAMED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Empty tuples and None match anything. `id` None is the default."""

    id: int | None
    name: str
    team_id: int | None = None
    environments: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    above_month_amount: Decimal | None = None
    gpus: tuple[str, ...] = ()
    role: ApproverRole = ApproverRole.LEAD
    people: tuple[Person, ...] = ()
    needed: int = 1


DEFAULT: Final = Rule(id=None, name="Four eyes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What rules look at. `has_cost` is False for a change that makes nothing run."""

    team_id: int
    environment: str
    kind: str
    instance_type: str
    gpu_name: str
    has_cost: bool
    # At full scale-out; None is not known.
    month_amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One matching rule, with why it matched in words."""

    rule_id: int | None
    rule: str
    role: ApproverRole
    people: tuple[Person, ...]
    needed: int
    why: str

    @property
    def who(self) -> str:
        """For example "a platform admin, or one of ana, bo"."""
        by_role = {
            ApproverRole.LEAD: "a lead or platform admin",
            ApproverRole.ADMIN: "a platform admin",
            ApproverRole.NAMED: "",
        }[self.role]
        names = ", ".join(person.name for person in self.people)
        named = f"one of {names}" if len(self.people) > 1 else names
        return ", or ".join(part for part in (by_role, named) if part)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "people": [[person.id, person.name] for person in self.people]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A valid approval. A delegate's counts as that of the lead whom they stand for."""

    person_id: int
    capacity: Capacity
    stands_for_id: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    requirement: Requirement
    given: int

    @property
    def missing(self) -> int:
        return max(0, self.requirement.needed - self.given)

    @property
    def words(self) -> str:
        needed = self.requirement.needed
        count = f"{min(self.given, needed)} of {needed} approval{'' if needed == 1 else 's'}"
        return f"{count} by {self.requirement.who}" if self.missing else f"{count} given"


def requirement_from_json(data: Mapping[str, Any]) -> Requirement:
    return Requirement(
        rule_id=data["rule_id"],
        rule=data["rule"],
        role=ApproverRole(data["role"]),
        people=tuple(Person(person_id, name) for person_id, name in data["people"]),
        needed=data["needed"],
        why=data["why"],
    )


def requirements(rules: Iterable[Rule], subject: Subject) -> tuple[Requirement, ...]:
    """The strictest first. What another one implies is left out: it would only be noise."""
    found = [_require(rule, subject) for rule in (DEFAULT, *rules) if matches(rule, subject)]
    found.sort(key=_strictness, reverse=True)
    kept: list[Requirement] = []
    for one in found:
        if not any(_implies(other, one) for other in kept):
            kept.append(one)
    return tuple(kept)


def matches(rule: Rule, subject: Subject) -> bool:
    return (
        rule.team_id in (None, subject.team_id)
        and (not rule.environments or subject.environment in rule.environments)
        and (not rule.kinds or subject.kind in rule.kinds)
        and _is_above(rule, subject)
        and (not rule.gpus or any(_names_gpu(pattern, subject) for pattern in rule.gpus))
    )


def counts_for(requirement: Requirement, given: Given, *, requester_id: int) -> bool:
    """Never the requester's own approval, nor one given on the requester's authority."""
    if given.person_id == requester_id:
        return False
    if _is_named(requirement, given):
        return True
    return given.capacity in _GIVES[requirement.role] and given.stands_for_id != requester_id


def progress_of(
    found: Iterable[Requirement], given: Iterable[Given], *, requester_id: int
) -> tuple[Progress, ...]:
    """Approvals on the same authority count once; one approval may count for several rules."""
    all_given = tuple(given)
    return tuple(
        Progress(
            one,
            len(
                {
                    _authority(one, by)
                    for by in all_given
                    if counts_for(one, by, requester_id=requester_id)
                }
            ),
        )
        for one in found
    )


def is_satisfied(
    found: Sequence[Requirement], given: Iterable[Given], *, requester_id: int
) -> bool:
    """Nothing is satisfied without any requirement: that would approve what nobody looked at."""
    rows = progress_of(found, given, requester_id=requester_id)
    return bool(rows) and all(row.missing == 0 for row in rows)


def would_help(
    rows: Iterable[Progress], given: Iterable[Given], one: Given, *, requester_id: int
) -> bool:
    """Whether one more approval brings a rule that is not satisfied yet any further."""
    before = tuple(given)
    return any(
        row.missing > 0
        and counts_for(row.requirement, one, requester_id=requester_id)
        and _authority(row.requirement, one)
        not in {
            _authority(row.requirement, by)
            for by in before
            if counts_for(row.requirement, by, requester_id=requester_id)
        }
        for row in rows
    )


def _require(rule: Rule, subject: Subject) -> Requirement:
    return Requirement(
        rule_id=rule.id,
        rule=rule.name,
        role=rule.role,
        people=rule.people,
        needed=rule.needed,
        why=_why(rule, subject),
    )


def _why(rule: Rule, subject: Subject) -> str:
    if rule.id is None:
        return "someone other than the requester approves every change"
    parts = ["every change"] if not rule.kinds else [f"a {subject.kind.replace('_', ' ')}"]
    if rule.team_id is not None:
        parts.append("of this team")
    if rule.environments:
        parts.append(f"in {subject.environment}")
    if rule.gpus:
        parts.append(f"on {subject.gpu_name or subject.instance_type}")
    if rule.above_month_amount is not None:
        parts.append(_amount_words(rule.above_month_amount, subject.month_amount))
    return " ".join(parts)


def _amount_words(limit: Decimal, amount: Decimal | None) -> str:
    if amount is None:
        return f"with an unknown price (may be above ${limit:,.0f} a month)"
    return f"that may cost ${amount:,.0f} a month, above ${limit:,.0f}"


def _is_above(rule: Rule, subject: Subject) -> bool:
    """A price that is not known is not a low one."""
    if rule.above_month_amount is None:
        return True
    if not subject.has_cost:
        return False
    return subject.month_amount is None or subject.month_amount > rule.above_month_amount


def _names_gpu(pattern: str, subject: Subject) -> bool:
    wanted = pattern.lower()
    gpu = subject.gpu_name.lower()
    # "h100" names NVIDIA-H100-80GB-HBM3 too; an instance type is written out or has a *.
    is_gpu = bool(gpu) and (fnmatchcase(gpu, wanted) or wanted in gpu)
    return is_gpu or fnmatchcase(subject.instance_type.lower(), wanted)


def _is_named(requirement: Requirement, given: Given) -> bool:
    return given.person_id in {person.id for person in requirement.people}


def _authority(requirement: Requirement, given: Given) -> int:
    if _is_named(requirement, given) or given.stands_for_id is None:
        return given.person_id
    return given.stands_for_id


_RANK: Final = {ApproverRole.LEAD: 0, ApproverRole.ADMIN: 1, ApproverRole.NAMED: 2}


def _strictness(one: Requirement) -> tuple[int, int, int, str]:
    return (one.needed, _RANK[one.role], -len(one.people), one.rule)


def _implies(strict: Requirement, loose: Requirement) -> bool:
    """Whoever satisfies `strict` satisfies `loose`: fewer people may give it, and more must."""
    people = {person.id for person in strict.people} <= {person.id for person in loose.people}
    return strict.needed >= loose.needed and people and _GIVES[strict.role] <= _GIVES[loose.role]
