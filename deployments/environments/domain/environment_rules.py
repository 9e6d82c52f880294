"""The rules of an environment: the platform's, and those that a team adds for itself.

Both hold, so the stricter value of each field wins and a team never loosens what the platform set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final

from deployments.states import Environment

MOST_APPROVALS: Final = 5
# From the least to the most protected; versions are promoted in this order.
ORDER: Final = (Environment.DEVELOPMENT, Environment.STAGING, Environment.PRODUCTION)


class ApproverGroup(StrEnum):
    """The people who may approve, from the weaker to the stricter."""

    LEAD = "lead"
    ADMIN = "admin"


ROLES: Final = tuple(role.value for role in ApproverGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRules:
    """The rules of an environment. `role` "lead" means a lead or a platform admin.

    `promoted_from` is the environment in which a version must have served before it enters this one. Empty means
    none.
    """

    approvals: int = 1
    role: str = ApproverGroup.LEAD.value
    stop_needs_approval: bool = False
    callers_need_key: bool = False
    golden_required: bool = False
    promoted_from: str = ""

    def merge(self, other: EnvironmentRules) -> EnvironmentRules:
        """Return the rules if both hold."""
        return EnvironmentRules(
            approvals=max(self.approvals, other.approvals),
            role=max(self.role, other.role, key=ROLES.index),
            stop_needs_approval=self.stop_needs_approval or other.stop_needs_approval,
            callers_need_key=self.callers_need_key or other.callers_need_key,
            golden_required=self.golden_required or other.golden_required,
            promoted_from=max(self.promoted_from, other.promoted_from, key=_rank),
        )

    def weaker_fields(self, before: EnvironmentRules) -> tuple[str, ...]:
        """Return the fields in which these rules require less than `before`."""
        kept = asdict(self.merge(before))
        mine = asdict(self)
        return tuple(field.name for field in fields(self) if kept[field.name] != mine[field.name])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EnvironmentRules:
        return cls(**{field.name: data[field.name] for field in fields(cls)})


DEFAULTS: Final[Mapping[Environment, EnvironmentRules]] = {
    Environment.DEVELOPMENT: EnvironmentRules(),
    Environment.STAGING: EnvironmentRules(),
    # Users rely on its answers, so ending them takes the approval that starting them took.
    Environment.PRODUCTION: EnvironmentRules(stop_needs_approval=True),
}


def previous_of(environment: str) -> Environment | None:
    """Return the environment from which a version is promoted to this one. None for the first."""
    index = ORDER.index(Environment(environment))
    return ORDER[index - 1] if index else None


def source_of(environment: str, rules: EnvironmentRules) -> str:
    """Return the environment that gives the evidence of a promotion to this one. Empty for the first one."""
    return rules.promoted_from or previous_of(environment) or ""


def next_of(environment: str) -> Environment | None:
    """Return the environment to which a version is promoted from this one. None for the last."""
    index = ORDER.index(Environment(environment)) + 1
    return ORDER[index] if index < len(ORDER) else None


def sources_of(environment: str) -> tuple[Environment, ...]:
    """Return the environments from which a version can be promoted to this one."""
    return ORDER[: ORDER.index(Environment(environment))]


def _rank(environment: str) -> int:
    return ORDER.index(Environment(environment)) if environment else -1
