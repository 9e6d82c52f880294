"""Reads Istio's RequestAuthentications and AuthorizationPolicies of a Gateway, for Envoy's own filters: pure.

Translated as Istio does it: a token that is there must be valid, one that is missing passes, and what a policy
denies is refused with 403. A policy that this cluster cannot translate denies every request.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slipway_localcluster.controllers.ownership import is_deleted
from slipway_localcluster.errors import JsonObject

_TYPES = "type.googleapis.com/envoy"
_JWT = f"{_TYPES}.extensions.filters.http.jwt_authn.v3.JwtAuthentication"
_RBAC = f"{_TYPES}.extensions.filters.http.rbac.v3.RBAC"
TOKENS, ACCESS = "istio-tokens", "istio-access"
# In their order: access is decided by what the tokens say.
FILTERS: Mapping[str, str] = {TOKENS: _JWT, ACCESS: _RBAC}
_METADATA, _PAYLOAD = "envoy.filters.http.jwt_authn", "payload"
_HEADER = re.compile(r"request\.headers\[([^\]]+)\]")


class UnsupportedIstioPolicy(Exception):
    """The policy uses what this cluster does not translate."""


@dataclass(frozen=True, slots=True)
class GatewayAccess:
    """The access to the Gateway that Istio's policies allow. `providers` verify tokens, by name; `denied` are
    policies of Envoy's RBAC filter, by name.
    """

    providers: Mapping[str, JsonObject]
    denied: Mapping[str, JsonObject]


OPEN_GATEWAY = GatewayAccess({}, {})


def read(
    authentications: Iterable[JsonObject],
    policies: Iterable[JsonObject],
    gateway: Mapping[str, str],
) -> GatewayAccess:
    rules = [rule for item in _of(authentications, gateway) for rule in _rules(item, "jwtRules")]
    denied: dict[str, JsonObject] = {}
    for policy in _of(policies, gateway):
        name = f"{policy['metadata']['namespace']}/{policy['metadata']['name']}"
        try:
            translated = [_denied(rule) for rule in _denying(policy)]
        except UnsupportedIstioPolicy:
            translated = [_EVERYTHING]
        denied |= {f"{name}/{number}": item for number, item in enumerate(translated)}
    providers = {f"rule-{number}": _provider(rule) for number, rule in enumerate(rules)}
    return GatewayAccess(providers, denied)


def filters(access: GatewayAccess) -> dict[str, JsonObject]:
    """Return the configurations of the filters, by name."""
    tokens: JsonObject = {"@type": _JWT}
    if access.providers:
        any_of = [{"provider_name": name} for name in sorted(access.providers)]
        requires = {"requires_any": {"requirements": [*any_of, {"allow_missing": {}}]}}
        tokens["providers"] = dict(access.providers)
        tokens["rules"] = [{"match": {"prefix": "/"}, "requires": requires}]
    rbac: JsonObject = {"@type": _RBAC}
    if access.denied:
        rbac["rules"] = {"action": "DENY", "policies": dict(access.denied)}
    return {TOKENS: tokens, ACCESS: rbac}


def _of(items: Iterable[JsonObject], gateway: Mapping[str, str]) -> list[JsonObject]:
    """Keep the policies of the Gateway, in its namespace, as Istio does."""
    target = ("gateway.networking.k8s.io", "Gateway", gateway["name"])
    return [
        item
        for item in items
        if not is_deleted(item)
        and item["metadata"]["namespace"] == gateway["namespace"]
        and any(
            (ref.get("group", ""), ref["kind"], ref["name"]) == target
            for ref in item["spec"].get("targetRefs") or ()
        )
    ]


def _rules(item: JsonObject, field: str) -> Sequence[JsonObject]:
    return item["spec"].get(field) or ()


def _provider(rule: JsonObject) -> JsonObject:
    provider: JsonObject = {
        "issuer": rule["issuer"],
        "local_jwks": {"inline_string": rule.get("jwks", '{"keys":[]}')},
        "forward": bool(rule.get("forwardOriginalToken")),
        "from_headers": [
            {"name": header["name"], "value_prefix": header.get("prefix", "")}
            for header in rule.get("fromHeaders") or ()
        ],
        "claim_to_headers": [
            {"header_name": item["header"], "claim_name": item["claim"]}
            for item in rule.get("outputClaimToHeaders") or ()
        ],
        "payload_in_metadata": _PAYLOAD,
    }
    return provider | ({"audiences": rule["audiences"]} if rule.get("audiences") else {})


def _denying(policy: JsonObject) -> Sequence[JsonObject]:
    """Raises Unsupported."""
    if policy["spec"].get("action") != "DENY":
        raise UnsupportedIstioPolicy("only DENY is supported")
    return _rules(policy, "rules")


_EVERYTHING: JsonObject = {"permissions": [{"any": True}], "principals": [{"any": True}]}


def _denied(rule: JsonObject) -> JsonObject:
    """Raises Unsupported."""
    if set(rule) - {"from", "to", "when"}:
        raise UnsupportedIstioPolicy("only from, to and when are supported")
    paths = [path for to in rule.get("to") or () for path in _only(to["operation"], "paths")]
    who: list[JsonObject] = [
        {"not_id": {"or_ids": {"ids": [_principal(name) for name in names]}}}
        for source in rule.get("from") or ()
        if (names := _only(source["source"], "notRequestPrincipals"))
    ]
    if len(who) > 1:
        raise UnsupportedIstioPolicy("only one source is supported")
    conditions = [_condition(item) for item in rule.get("when") or ()]
    return {
        "permissions": [_permission(path) for path in paths] or [{"any": True}],
        "principals": [{"and_ids": {"ids": [*who, *conditions]}}]
        if who or conditions
        else [{"any": True}],
    }


def _only(item: JsonObject, field: str) -> list[str]:
    """Raises Unsupported for other fields."""
    if set(item) - {field}:
        raise UnsupportedIstioPolicy(f"only {field} is supported")
    return list(item.get(field) or ())


def _permission(path: str) -> JsonObject:
    match = {"prefix": path[:-1]} if path.endswith("*") else {"exact": path}
    return {"url_path": {"path": match}}


def _principal(name: str) -> JsonObject:
    """Return the match of `issuer/subject`, split at the last slash. Raises Unsupported for other principals."""
    issuer, _, subject = name.rpartition("/")
    if "*" in name or not issuer:
        raise UnsupportedIstioPolicy("only exact principals are supported")
    return {"and_ids": {"ids": [_claim("iss", issuer), _claim("sub", subject)]}}


def _claim(name: str, value: str) -> JsonObject:
    path = [{"key": _PAYLOAD}, {"key": name}]
    return {
        "metadata": {
            "filter": _METADATA,
            "path": path,
            "value": {"string_match": {"exact": value}},
        }
    }


def _condition(item: JsonObject) -> JsonObject:
    named = _HEADER.fullmatch(item["key"])
    if named is None or set(item) - {"key", "values"}:
        raise UnsupportedIstioPolicy("only values of headers are supported")
    headers = [
        {"header": {"name": named[1], "string_match": {"exact": value}}} for value in item["values"]
    ]
    return {"or_ids": {"ids": headers}}
