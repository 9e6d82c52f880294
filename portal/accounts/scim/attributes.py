"""Attributes of SCIM users and groups, read from resources, PATCH operations and filters. Pure.

Attributes that the portal does not keep (title, phone numbers, extensions) are accepted and ignored, as
RFC 7643 lets a service provider do; a value of a known attribute that cannot be used is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from portal.accounts.scim.errors import ScimError, invalid_value

MOST_OPERATIONS: Final = 1_000
MOST_MEMBERS: Final = 10_000
_LONGEST: Final = 254
_FILTER: Final = re.compile(r'\s*([A-Za-z][\w.:]*)\s+eq\s+("(?:[^"\\]|\\.)*")\s*', re.IGNORECASE)
_MEMBER: Final = re.compile(r'members\[\s*value\s+eq\s+("(?:[^"\\]|\\.)*")\s*\]', re.IGNORECASE)
# The address that the portal keeps; one of another type (home, other) is none of its own.
_EMAIL_PATH: Final = re.compile(
    r'emails\[\s*(?:type\s+eq\s+"work"|primary\s+eq\s+"?true"?)\s*\]\.value', re.IGNORECASE
)
_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:"
# By their names in small letters: attributes are case-insensitive (RFC 7643, 2.1).
_TEXTS: Final = {
    "username": "user_name",
    "externalid": "external_id",
    "displayname": "display_name",
    "name.givenname": "given_name",
    "name.familyname": "family_name",
    "name.formatted": "display_name",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A SCIM filter: `attribute eq "value"`, the attribute in small letters."""

    attribute: str
    value: str


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A change of a group's members. `kind` is add, remove or replace; ids are those of SCIM. Removing none of them
    means all.
    """

    kind: str
    ids: tuple[str, ...]
    is_all: bool = False


def parse_filter(text: str, known: Sequence[str]) -> Filter | None:
    """Parse a SCIM filter. None without a filter. Raises ScimError for one that is not supported."""
    if not text:
        return None
    match = _FILTER.fullmatch(text)
    attribute = match[1].lower().removeprefix(_SCHEMA.lower() + "user:") if match else ""
    if match is None or attribute not in known:
        names = ", ".join(known)
        raise ScimError(400, f'Write ATTRIBUTE eq "VALUE" with one of {names}.', "invalidFilter")
    return Filter(attribute, _unquote(match[2]))


def user_fields(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a whole resource; what it leaves out is left out."""
    changes: dict[str, Any] = {}
    for name, value in resource.items():
        changes |= _user_field(name, value)
    return changes


def user_changes(operations: Sequence[Mapping[str, str | Any]]) -> dict[str, Any]:
    """Return the fields that PATCH operations set. A removed one is empty."""
    changes: dict[str, Any] = {}
    for kind, path, value in _read(operations):
        if kind == "remove":
            changes |= _user_field(path, False if path.lower() == "active" else "")
        elif path:
            changes |= _user_field(path, value)
        else:
            changes |= user_fields(_object(value))
    return changes


def group_changes(
    operations: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, str], list[MemberChange]]:
    """Return the texts that PATCH operations set, and their changes of members in order."""
    texts: dict[str, str] = {}
    members: list[MemberChange] = []
    for kind, path, value in _read(operations):
        match = _MEMBER.fullmatch(path)
        if match is not None:
            if kind != "remove":
                raise ScimError(400, "members[…] can only be removed.", "invalidPath")
            members.append(MemberChange("remove", (_unquote(match[1]),)))
        elif path.lower() == "members":
            is_all = kind == "remove" and value is None
            members.append(MemberChange(kind, member_ids(value), is_all))
        elif path:
            texts |= group_texts({path: "" if kind == "remove" else value})
        else:
            resource = _object(value)
            texts |= group_texts(resource)
            if "members" in resource:
                members.append(MemberChange(kind, member_ids(resource["members"])))
    return texts, members


def group_texts(resource: Mapping[str, Any]) -> dict[str, str]:
    names = {"displayname": "display_name", "externalid": "external_id"}
    return {
        names[name.lower()]: _text(name, value)
        for name, value in resource.items()
        if name.lower() in names
    }


def member_ids(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    rows = value if isinstance(value, list) else [value]
    if len(rows) > MOST_MEMBERS:
        raise ScimError(413, f"More than {MOST_MEMBERS} members in one request.")
    ids = [row.get("value") if isinstance(row, Mapping) else None for row in rows]
    if not all(isinstance(item, str) and item for item in ids):
        raise invalid_value("members is a list of objects with value.")
    return tuple(dict.fromkeys(str(item) for item in ids))


def _read(operations: Any) -> list[tuple[str, str, Any]]:
    if not isinstance(operations, list) or not operations:
        raise ScimError(400, "Operations is a list with at least one operation.", "invalidSyntax")
    if len(operations) > MOST_OPERATIONS:
        raise ScimError(413, f"More than {MOST_OPERATIONS} operations in one request.")
    return [_read_one(operation) for operation in operations]


def _read_one(operation: Any) -> tuple[str, str, Any]:
    """Entra ID writes Add and Replace with a capital letter."""
    if not isinstance(operation, Mapping):
        raise ScimError(400, "An operation is an object.", "invalidSyntax")
    kind, path = operation.get("op"), operation.get("path") or ""
    if not isinstance(kind, str) or kind.lower() not in ("add", "remove", "replace"):
        raise ScimError(400, "op is add, remove or replace.", "invalidSyntax")
    if not isinstance(path, str):
        raise ScimError(400, "path is a text.", "invalidPath")
    if kind.lower() == "remove" and not path:
        raise ScimError(400, "remove needs a path.", "noTarget")
    bare = re.sub(rf"^{re.escape(_SCHEMA)}(User|Group):", "", path, flags=re.IGNORECASE)
    return kind.lower(), bare, operation.get("value")


def _user_field(name: str, value: Any) -> dict[str, Any]:
    lowered = name.lower()
    if lowered == "active":
        return {"is_active": _boolean(value)}
    if lowered == "name":
        parts = _object(value) if value else {}
        return {
            k: v
            for part, text in parts.items()
            for k, v in _user_field(f"name.{part}", text).items()
        }
    if lowered == "emails":
        return {"email": _email_of(value)}
    if _EMAIL_PATH.fullmatch(lowered):
        return {"email": _text(name, value)}
    if lowered in _TEXTS:
        return {_TEXTS[lowered]: _text(name, value)}
    return {}


def _email_of(value: Any) -> str:
    """Return the primary email address, or else the first."""
    rows = value if isinstance(value, list) else [value] if value else []
    if not all(isinstance(row, Mapping) for row in rows):
        raise invalid_value("emails is a list of objects with value.")
    rows = sorted(rows, key=lambda row: row.get("primary") is not True)
    return _text("emails", rows[0].get("value")) if rows else ""


def _boolean(value: Any) -> bool:
    """Read a boolean, including "True" and "False", which Entra ID sends without its compatibility flag."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise invalid_value("active is true or false.")


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        raise invalid_value(f"{name} is a text of at most {_LONGEST} characters.")
    return value.strip()


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise invalid_value("The value without a path is an object.")
    return value


def _unquote(text: str) -> str:
    try:
        value: str = json.loads(text)
    except ValueError as error:
        raise ScimError(400, "The value of the filter cannot be read.", "invalidFilter") from error
    return value
