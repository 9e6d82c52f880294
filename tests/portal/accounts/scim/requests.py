"""Requests as two identity providers send them, by their published descriptions.

Okta: developer.okta.com, "SCIM 2.0 protocol reference". Entra ID: learn.microsoft.com, "Develop and plan provisioning for a
SCIM endpoint". Recorded are the shapes; names and identifiers are ours.
"""

from __future__ import annotations

from typing import Any, Final

_USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
_ENTERPRISE: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
_GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
_PATCH: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [_PATCH], "Operations": list(operations)}


# Okta asks for the name before it creates anybody.
OKTA_LOOKUP: Final = 'userName eq "ana@example.org"'
OKTA_USER: Final[dict[str, Any]] = {
    "schemas": [_USER],
    "userName": "ana@example.org",
    "name": {"givenName": "Ana", "familyName": "Beck"},
    "emails": [{"primary": True, "value": "ana@example.org", "type": "work"}],
    "displayName": "Ana Beck",
    "locale": "en-US",
    "externalId": "00u1ab2cd",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}
OKTA_DEACTIVATE: Final = patch({"op": "replace", "value": {"active": False}})
OKTA_REACTIVATE: Final = patch({"op": "replace", "value": {"active": True}})
OKTA_GROUP: Final[dict[str, Any]] = {
    "schemas": [_GROUP],
    "displayName": "vision-leads",
    "members": [],
}


def okta_rename(group_id: str, name: str) -> dict[str, Any]:
    return patch({"op": "replace", "value": {"id": group_id, "displayName": name}})


def okta_add(user_id: str) -> dict[str, Any]:
    member = {"value": user_id, "display": "ana@example.org"}
    return patch({"op": "add", "path": "members", "value": [member]})


def okta_remove(user_id: str) -> dict[str, Any]:
    return patch({"op": "remove", "path": f'members[value eq "{user_id}"]'})


def okta_replace(*user_ids: str) -> dict[str, Any]:
    members = [{"value": user_id, "display": "x"} for user_id in user_ids]
    return patch({"op": "replace", "path": "members", "value": members})


ENTRA_USER: Final[dict[str, Any]] = {
    "schemas": [_USER, _ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "bo@example.org",
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "bo@example.org"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Bo Cho", "familyName": "Cho", "givenName": "Bo"},
    "roles": [],
    _ENTERPRISE: {"department": "ML"},
}
ENTRA_UPDATE: Final = patch(
    {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "bo.cho@example.org"},
    {"op": "Replace", "path": "name.familyName", "value": "Cho-Diaz"},
    {"op": "Add", "path": f"{_ENTERPRISE}:department", "value": "Vision"},
)
# Without the flag aadOptscim062020 the value is a text.
ENTRA_DISABLE: Final = patch({"op": "Replace", "path": "active", "value": "False"})
ENTRA_DISABLE_STRICT: Final = patch({"op": "Replace", "path": "active", "value": False})
ENTRA_GROUP: Final[dict[str, Any]] = {
    "schemas": [_GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
    "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
    "displayName": "slipway-vision",
    "meta": {"resourceType": "Group"},
}


def entra_add(user_id: str) -> dict[str, Any]:
    return patch({"op": "Add", "path": "members", "value": [{"$ref": None, "value": user_id}]})


def entra_remove(user_id: str) -> dict[str, Any]:
    return patch({"op": "Remove", "path": "members", "value": [{"$ref": None, "value": user_id}]})
