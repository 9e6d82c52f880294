"""Roles from the claims of an ID token. Pure.

A rule is a line: `CLAIM=VALUE -> TEAM ROLE`, or `CLAIM=VALUE -> platform-admin`.

    groups=ml-vision-leads -> vision lead
    groups=slipway-{team}-{role} -> {team} {role}
    realm_access.roles=slipway-admin -> platform-admin

`{team}` and `{role}` in VALUE stand for a team's short name and a role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

ROLES: Final = ("viewer", "member", "lead")
PLATFORM_ADMIN: Final = "platform-admin"
_TEAM: Final = r"[a-z](?:[-a-z0-9]{0,30}[a-z0-9])?"
_LINE: Final = re.compile(r"(?P<claim>[^=\s]+)=(?P<value>.+?)\s*->\s*(?P<target>\S.*)")
_PLACEHOLDERS: Final = {"team": rf"(?P<team>{_TEAM})", "role": rf"(?P<role>{'|'.join(ROLES)})"}
# More values than any directory sends; matching them all would delay a sign-in.
_MAX_VALUES: Final = 5_000


class BadRule(Exception):
    """A rule cannot be read; the message quotes it."""


class ClaimsIncomplete(Exception):
    """The provider left out a claim because it has too many values. Its absence means nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that gives a role to people with a claim. `team` and `role` may be placeholders; a rule for platform
    admins has neither.
    """

    claim: str
    value: str
    team: str = ""
    role: str = PLATFORM_ADMIN

    @property
    def is_for_admins(self) -> bool:
        return self.role == PLATFORM_ADMIN

    def match(self, value: str) -> tuple[str, str] | None:
        """Return the team and role that the value of a claim gives, or None."""
        match = re.fullmatch(_pattern(self.value), value)
        if match is None:
            return None
        named = match.groupdict()
        return named.get("team", self.team), named.get("role", self.role)


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights that claims give: a role for each team, and for the platform."""

    roles: Mapping[str, str] = field(default_factory=dict)
    is_platform_admin: bool = False


def parse(text: str) -> tuple[Rule, ...]:
    """Raises BadRule. Empty lines and lines that start with # are skipped."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(_parse_line(line) for line in lines if line and not line.startswith("#"))


def grant(rules: Sequence[Rule], claims: Mapping[str, Any]) -> Grant:
    """Return the highest role in each team. Raises ClaimsIncomplete if a claim of a rule was left out."""
    roles: dict[str, str] = {}
    is_admin = False
    for rule in rules:
        for value in read_claim(claims, rule.claim):
            match = rule.match(value)
            if match is None:
                continue
            if rule.is_for_admins:
                is_admin = True
                continue
            team, role = match
            roles[team] = max(role, roles.get(team, ROLES[0]), key=ROLES.index)
    return Grant(roles=roles, is_platform_admin=is_admin)


def read_claim(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the texts of a claim. A name with dots is also a path: `realm_access.roles`.

    Raises ClaimsIncomplete if the claim is only referred to (`_claim_names`, as Entra ID does above 200 groups), or
    has more values than are read.
    """
    if name in claims:
        return _texts(claims[name], name)
    if name.partition(".")[0] in _keys(claims.get("_claim_names")):
        raise ClaimsIncomplete(name)
    if name == "groups" and claims.get("hasgroups") in (True, "true"):
        raise ClaimsIncomplete(name)
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ()
        value = value[part]
    return _texts(value, name)


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        return ("true",) if value else ("false",)
    if not isinstance(value, list):
        return ()
    if len(value) > _MAX_VALUES:
        raise ClaimsIncomplete(name)
    return tuple(item for item in value if isinstance(item, str))


def _keys(value: Any) -> frozenset[str]:
    return frozenset(value) if isinstance(value, Mapping) else frozenset()


def _pattern(value: str) -> str:
    parts = re.split(r"(\{(?:team|role)\})", value)
    return "".join(_PLACEHOLDERS.get(part[1:-1], re.escape(part)) for part in parts)


def _parse_line(line: str) -> Rule:
    match = _LINE.fullmatch(line)
    if match is None or not match["value"].strip():
        raise BadRule(f"“{line}” cannot be read. Write: groups=ml-vision-leads -> vision lead")
    claim, value, target = match["claim"], match["value"].strip(), match["target"].split()
    if max(value.count("{team}"), value.count("{role}")) > 1:
        raise BadRule(f"“{line}” names a placeholder twice.")
    if target == [PLATFORM_ADMIN]:
        return Rule(claim=claim, value=_without_placeholders(value, line))
    if len(target) != 2:
        raise BadRule(f"“{line}” must end with a team and a role, or with {PLATFORM_ADMIN}.")
    team, role = target
    _check("team", team, value, line, is_valid=bool(re.fullmatch(_TEAM, team)))
    _check("role", role, value, line, is_valid=role in ROLES)
    return Rule(claim=claim, value=value, team=team, role=role)


def _check(kind: str, text: str, value: str, line: str, *, is_valid: bool) -> None:
    placeholder = f"{{{kind}}}"
    if (text == placeholder) != (placeholder in value):
        raise BadRule(f"“{line}” must have {placeholder} on both sides or on neither.")
    if text != placeholder and not is_valid:
        raise BadRule(f"“{line}”: “{text}” is not a {kind}.")


def _without_placeholders(value: str, line: str) -> str:
    if "{team}" in value or "{role}" in value:
        raise BadRule(f"“{line}”: {PLATFORM_ADMIN} takes no placeholder.")
    return value
