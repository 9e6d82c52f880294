"""SCIM resources as JSON (RFC 7643)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from portal.accounts.models import ProvisionedGroup, ProvisionedPerson

USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
MESSAGES: Final = "urn:ietf:params:scim:api:messages:2.0"
_CONFIG: Final = "urn:ietf:params:scim:schemas:core:2.0"
MOST_RESULTS: Final = 200
_FOUND: Final = {"supported": False}


def user(row: ProvisionedPerson, base: str) -> dict[str, Any]:
    person = row.user
    emails = [{"value": person.email, "type": "work", "primary": True}] if person.email else []
    return {
        "schemas": [USER],
        "id": str(row.pk),
        **({"externalId": row.external_id} if row.external_id else {}),
        "userName": row.user_name,
        "displayName": person.display_name,
        "name": {
            "givenName": person.first_name,
            "familyName": person.last_name,
            "formatted": person.get_full_name(),
        },
        "emails": emails,
        "active": row.is_active and person.is_active,
        "groups": [
            {"value": str(group.pk), "display": group.display_name} for group in row.groups.all()
        ],
        "meta": _meta(row, "User", f"{base}/Users/{row.pk}"),
    }


def group(row: ProvisionedGroup, base: str, *, has_members: bool = True) -> dict[str, Any]:
    """Return a group's resource. Members are left out if the client excludes them, as Entra ID does."""
    body: dict[str, Any] = {
        "schemas": [GROUP],
        "id": str(row.pk),
        **({"externalId": row.external_id} if row.external_id else {}),
        "displayName": row.display_name,
        "meta": _meta(row, "Group", f"{base}/Groups/{row.pk}"),
    }
    if has_members:
        body["members"] = [
            {"value": str(pk), "display": name}
            for pk, name in row.members.values_list("pk", "user_name")
        ]
    return body


def render_list(
    resources: Sequence[Mapping[str, Any]], *, total: int, start: int
) -> dict[str, Any]:
    return {
        "schemas": [f"{MESSAGES}:ListResponse"],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": len(resources),
        "Resources": list(resources),
    }


def error(status: int, detail: str, scim_type: str = "") -> dict[str, Any]:
    named = {"scimType": scim_type} if scim_type else {}
    return {
        "schemas": [f"{MESSAGES}:Error"],
        "status": str(status),
        **named,
        "detail": detail,
    }


def service_provider_config() -> dict[str, Any]:
    return {
        "schemas": [f"{_CONFIG}:ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST_RESULTS},
        "changePassword": _FOUND,
        "sort": _FOUND,
        "etag": _FOUND,
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "Bearer token",
                "description": "A provisioning token that a platform admin creates",
                "primary": True,
            }
        ],
    }


def resource_types() -> list[dict[str, Any]]:
    return [
        {
            "schemas": [f"{_CONFIG}:ResourceType"],
            "id": name,
            "name": name,
            "endpoint": f"/{name}s",
            "schema": schema,
        }
        for name, schema in (("User", USER), ("Group", GROUP))
    ]


def schemas() -> list[dict[str, Any]]:
    """Return the schemas with the attributes that are kept; others are accepted and ignored."""
    users = ("userName", "externalId", "displayName", "active", "name", "emails", "groups")
    groups = ("displayName", "externalId", "members")
    return [_schema(USER, "User", users), _schema(GROUP, "Group", groups)]


def _schema(key: str, name: str, attributes: Sequence[str]) -> dict[str, Any]:
    kinds = {"active": "boolean", "name": "complex", "emails": "complex", "groups": "complex"}
    kinds |= {"members": "complex"}
    many = ("emails", "groups", "members")
    return {
        "schemas": [f"{_CONFIG}:Schema"],
        "id": key,
        "name": name,
        "attributes": [
            {
                "name": attribute,
                "type": kinds.get(attribute, "string"),
                "multiValued": attribute in many,
                "required": attribute == ("userName" if name == "User" else "displayName"),
                "mutability": "readOnly" if attribute == "groups" else "readWrite",
            }
            for attribute in attributes
        ],
    }


def _meta(row: ProvisionedPerson | ProvisionedGroup, kind: str, location: str) -> dict[str, str]:
    return {
        "resourceType": kind,
        "created": row.created_at.isoformat(),
        "lastModified": row.changed_at.isoformat(),
        "location": location,
    }
