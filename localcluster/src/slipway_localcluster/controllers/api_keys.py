"""Reads SecurityPolicies with API keys, for Envoy's own filter: pure."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from slipway_localcluster.controllers.ownership import is_deleted
from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.errors import JsonObject

FILTER = "envoy.filters.http.api_key_auth"
_TYPES = "type.googleapis.com/envoy.extensions.filters.http.api_key_auth.v3"


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The API keys that a route accepts. `credentials` are pairs of client and key. With a `problem` nobody is
    served.
    """

    credentials: tuple[tuple[str, str], ...] = ()
    headers: tuple[str, ...] = ()
    client_header: str = ""
    hides_key: bool = False
    problem: str = ""

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(client for client, _ in self.credentials)

    def route_filter(self) -> JsonObject:
        return route_filter(self)


def disabled_filter() -> JsonObject:
    """Return the filter for the chain of all routes. A route with keys turns it on by its own configuration."""
    return {"name": FILTER, "disabled": True, "typed_config": {"@type": f"{_TYPES}.ApiKeyAuth"}}


def route_filter(access: ApiKeys) -> JsonObject:
    forwarding: JsonObject = {"hide_credentials": access.hides_key}
    if access.client_header:
        forwarding["header"] = access.client_header
    return {
        FILTER: {
            "@type": f"{_TYPES}.ApiKeyAuthPerRoute",
            "credentials": [{"client": client, "key": key} for client, key in access.credentials],
            "key_sources": [{"header": name} for name in access.headers],
            "forwarding": forwarding,
        }
    }


def read_policy(policy: JsonObject, secrets: Mapping[Key, JsonObject]) -> ApiKeys:
    namespace = policy["metadata"]["namespace"]
    auth = policy["spec"].get("apiKeyAuth")
    if not auth:
        return ApiKeys(problem="only apiKeyAuth is supported")
    credentials: dict[str, str] = {}
    for ref in auth["credentialRefs"]:
        if ref.get("namespace", namespace) != namespace:
            return ApiKeys(problem="a Secret of another namespace is not supported")
        secret = secrets.get((namespace, ref["name"]))
        if secret is None or is_deleted(secret):
            return ApiKeys(problem=f"Secret {namespace}/{ref['name']} does not exist")
        try:
            data = (secret.get("data") or {}).items()
            decoded = {client: base64.b64decode(text).decode() for client, text in data}
        except (binascii.Error, UnicodeDecodeError):
            return ApiKeys(problem=f"Secret {namespace}/{ref['name']} is not text in base64")
        credentials = decoded | credentials
    return ApiKeys(
        credentials=tuple(sorted(credentials.items())),
        headers=tuple(name for source in auth["extractFrom"] for name in source["headers"]),
        client_header=auth.get("forwardClientIDHeader", ""),
        hides_key=bool(auth.get("sanitize")),
    )
