"""Reads SecurityPolicies with JWTs of an identity provider, for Envoy's own filters: pure.

Translated as Envoy Gateway does it: one filter of the listener holds the providers of all routes and fetches
their keys, a route names what it requires of it, and the claims decide in a filter of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.errors import JsonObject

TOKENS: Final = "provider-tokens"
CLAIMS: Final = "provider-claims"
_TYPES: Final = "type.googleapis.com/envoy"
_EXTENSIONS: Final = f"{_TYPES}.extensions.filters.http"
JWT: Final = f"{_EXTENSIONS}.jwt_authn.v3.JwtAuthentication"
_RBAC: Final = f"{_EXTENSIONS}.rbac.v3"
_METADATA: Final = "envoy.filters.http.jwt_authn"
_CA_BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"
_CACHE: Final = "300s"
_TIMEOUT: Final = "10s"


class UnsupportedTokenPolicy(Exception):
    """The policy uses what this cluster does not translate."""


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """The tokens of identity providers that a route accepts. `clients` are the values of the claim in
    `client_header` that are let through. With a `problem` nobody is served.
    """

    route: str = ""
    provider: JsonObject | None = None
    allowed: tuple[JsonObject, ...] = ()
    clients: tuple[str, ...] = ()
    client_header: str = ""
    problem: str = ""

    def route_filter(self) -> JsonObject:
        policies = {
            f"rule-{number}": {"permissions": [{"any": True}], "principals": [principal]}
            for number, principal in enumerate(self.allowed)
        }
        rules: JsonObject = {"action": "ALLOW", "policies": policies}
        return {
            TOKENS: {
                "@type": f"{_EXTENSIONS}.jwt_authn.v3.PerRouteConfig",
                "requirement_name": self.route,
            },
            CLAIMS: {"@type": f"{_RBAC}.RBACPerRoute", "rbac": {"rules": rules}},
        }


def claims_filter() -> JsonObject:
    """Return the filter for the chain of all routes. Without rules it admits everyone."""
    return {"name": CLAIMS, "typed_config": {"@type": f"{_RBAC}.RBAC"}}


def tokens_filter(by_route: Mapping[Key, Any]) -> JsonObject:
    """Return the configuration of the listener's filter. Values other than ProviderTokens are left out."""
    config: JsonObject = {"@type": JWT}
    listed = [item for item in by_route.values() if _is_usable(item)]
    if listed:
        config["providers"] = {item.route: item.provider for item in listed}
        config["requirement_map"] = {item.route: {"provider_name": item.route} for item in listed}
    return config


def key_servers(by_route: Mapping[Key, Any]) -> list[JsonObject]:
    """Return Envoy's clusters of the servers that publish the providers' keys."""
    listed = (item for item in by_route.values() if _is_usable(item))
    uris = {item.provider["remote_jwks"]["http_uri"]["uri"] for item in listed}
    clusters = {_server_name(uri): _server(uri) for uri in sorted(uris)}
    return [clusters[name] for name in sorted(clusters)]


def read_policy(policy: JsonObject) -> ProviderTokens:
    try:
        return _translated(policy)
    except UnsupportedTokenPolicy as error:
        return ProviderTokens(problem=str(error))


def _is_usable(item: Any) -> bool:
    return isinstance(item, ProviderTokens) and item.provider is not None and not item.problem


def _translated(policy: JsonObject) -> ProviderTokens:
    """Raises Unsupported."""
    spec, metadata = policy["spec"], policy["metadata"]
    providers: Sequence[JsonObject] = spec["jwt"].get("providers") or ()
    if len(providers) != 1 or spec["jwt"].get("optional") or "apiKeyAuth" in spec:
        raise UnsupportedTokenPolicy(
            "only one provider is supported, and no other way in beside it"
        )
    provider, authorization = providers[0], spec.get("authorization") or {}
    if authorization.get("defaultAction") != "Deny":
        raise UnsupportedTokenPolicy("only authorization with the defaultAction Deny is supported")
    headers: Sequence[JsonObject] = provider.get("claimToHeaders") or ()
    if len(headers) != 1:
        raise UnsupportedTokenPolicy("claimToHeaders must name one claim")
    named = headers[0]
    rules = authorization.get("rules") or ()
    route = f"{metadata['namespace']}/{metadata['name']}/{provider['name']}"
    return ProviderTokens(
        route=route,
        provider=_provider(provider, named),
        allowed=tuple(_principal(rule, provider["name"]) for rule in rules),
        clients=tuple(sorted({one for rule in rules for one in _values(rule, named["claim"])})),
        client_header=named["header"],
    )


def _provider(provider: JsonObject, named: JsonObject) -> JsonObject:
    """Raises Unsupported."""
    uri = (provider.get("remoteJWKS") or {}).get("uri", "")
    if urlsplit(uri).scheme not in ("http", "https"):
        raise UnsupportedTokenPolicy("only a remoteJWKS at an HTTP address is supported")
    extracted = provider.get("extractFrom") or {}
    if set(extracted) - {"headers"}:
        raise UnsupportedTokenPolicy("tokens are taken from headers only")
    fetched = {"uri": uri, "cluster": _server_name(uri), "timeout": _TIMEOUT}
    return {
        "issuer": provider.get("issuer", ""),
        "audiences": list(provider.get("audiences") or ()),
        "remote_jwks": {
            "http_uri": fetched,
            "cache_duration": provider["remoteJWKS"].get("cacheDuration", _CACHE),
            "async_fetch": {},
        },
        # Envoy Gateway does so: the route takes the token away.
        "forward": True,
        "from_headers": [
            {"name": header["name"], "value_prefix": header.get("valuePrefix", "")}
            for header in extracted.get("headers") or ()
        ],
        "claim_to_headers": [{"header_name": named["header"], "claim_name": named["claim"]}],
        "payload_in_metadata": provider["name"],
    }


def _principal(rule: JsonObject, provider: str) -> JsonObject:
    """Raises Unsupported."""
    principal = rule.get("principal") or {}
    jwt = principal.get("jwt") or {}
    if rule.get("action") != "Allow" or set(principal) != {"jwt"} or jwt["provider"] != provider:
        raise UnsupportedTokenPolicy("only rules that allow claims of the provider are supported")
    return {"and_ids": {"ids": [_claim(provider, claim) for claim in jwt["claims"]]}}


def _claim(provider: str, claim: JsonObject) -> JsonObject:
    is_list = claim.get("valueType") == "StringArray"
    path = [{"key": part} for part in (provider, *claim["name"].split("."))]
    exact: list[JsonObject] = [{"string_match": {"exact": value}} for value in claim["values"]]
    matched = [{"list_match": {"one_of": one}} for one in exact] if is_list else exact
    ids = [{"metadata": {"filter": _METADATA, "path": path, "value": one}} for one in matched]
    return {"or_ids": {"ids": ids}}


def _values(rule: JsonObject, claim: str) -> list[str]:
    listed = rule["principal"]["jwt"]["claims"]
    return [value for item in listed if item["name"] == claim for value in item["values"]]


def _server_name(uri: str) -> str:
    host, port = _address(uri)
    return f"jwks_{host}_{port}"


def _address(uri: str) -> tuple[str, int]:
    parts = urlsplit(uri)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _server(uri: str) -> JsonObject:
    host, port = _address(uri)
    name = _server_name(uri)
    endpoint = {"address": {"socket_address": {"address": host, "port_value": port}}}
    cluster: JsonObject = {
        "@type": f"{_TYPES}.config.cluster.v3.Cluster",
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": "5s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}],
        },
    }
    if urlsplit(uri).scheme == "https":
        cluster["transport_socket"] = _tls(host)
    return cluster


def _tls(host: str) -> JsonObject:
    tls = f"{_TYPES}.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    names = [{"san_type": "DNS", "matcher": {"exact": host}}]
    context = {"trusted_ca": {"filename": _CA_BUNDLE}, "match_typed_subject_alt_names": names}
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": tls,
            "sni": host,
            "common_tls_context": {"validation_context": context},
        },
    }
