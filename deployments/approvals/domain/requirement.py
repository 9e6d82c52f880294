"""The requirement of a matching rule, as stored with the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from deployments.approvals.domain.approver_roles import RequiredRole


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The requirement of one matching rule. `why` says why the rule matched."""

    rule_id: int | None
    rule: str
    role: RequiredRole
    people: tuple[Person, ...]
    needed: int
    why: str

    @property
    def who(self) -> str:
        """The people who may approve, in words: "a platform admin, or one of ana, bo"."""
        by_role = {
            RequiredRole.LEAD: "a lead or platform admin",
            RequiredRole.ADMIN: "a platform admin",
            RequiredRole.NAMED: "",
        }[self.role]
        names = ", ".join(person.name for person in self.people)
        named = f"one of {names}" if len(self.people) > 1 else names
        return ", or ".join(part for part in (by_role, named) if part)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "people": [[person.id, person.name] for person in self.people]}


def from_json(data: Mapping[str, Any]) -> Requirement:
    people = tuple(map(tuple, data["people"]))
    facts = (data[key] for key in ("rule_id", "rule", "role", "needed", "why"))
    return _requirement(*facts, people)


# Every page reads those of all open requests, most of which are the same few.
@lru_cache(maxsize=1024)
def _requirement(
    rule_id: int | None, rule: str, role: str, needed: int, why: str, people: tuple[Any, ...]
) -> Requirement:
    return Requirement(
        rule_id=rule_id,
        rule=rule,
        role=RequiredRole(role),
        people=tuple(Person(*person) for person in people),
        needed=needed,
        why=why,
    )
