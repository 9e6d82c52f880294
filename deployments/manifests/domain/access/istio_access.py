"""The callers of a deployment behind a Gateway of Istio: signed keys, and the list of those that work.

Istio's policies name a Gateway, not a route, and lie in its namespace. One RequestAuthentication verifies the
portal's tokens for all deployments; one AuthorizationPolicy for each deployment denies its paths to whoever is
not listed. A key is revoked by leaving the list, and a key of another deployment was never on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.access.domain.headers import CALLER_HEADER, KEY_PREFIX
from deployments.manifests.domain import http_route, route_paths
from deployments.manifests.domain.metadata import MANAGED_BY, Manifest, ManifestContext, metadata

API_VERSION: Final = "security.istio.io/v1"
TOKENS_KIND: Final = "RequestAuthentication"
ACCESS_KIND: Final = "AuthorizationPolicy"
TOKENS_NAME: Final = "slipway-callers"
_GRPC_PATHS: Final = "/" + route_paths.GRPC_METHODS[0].split("/")[1] + "/*"


@dataclass(frozen=True, slots=True)
class TokenSigner:
    """The issuer of tokens that a gateway accepts: `name` is their `iss`, `jwks` the public keys as JSON."""

    name: str
    jwks: str


def jwks_of(public_jwks: Sequence[Mapping[str, Any]]) -> str:
    """Return a JWK set, sorted, so that equal keys make an equal text."""
    ordered = sorted(public_jwks, key=lambda jwk: str(jwk["kid"]))
    return json.dumps({"keys": ordered}, sort_keys=True, separators=(",", ":"))


def tokens(context: ManifestContext, issuers: Sequence[TokenSigner]) -> Manifest:
    """Return the policy by which the Gateway verifies tokens. It has the public keys inline and needs no way to
    the portal.

    Only what begins with the portal's prefix is taken for a token: credentials of the Gateway's other routes
    pass untouched. It lets requests without a token through; `access` denies them where keys are needed.
    """
    rule: dict[str, Any] = {
        "fromHeaders": [
            {"name": "x-api-key", "prefix": KEY_PREFIX},
            {"name": "Authorization", "prefix": f"Bearer {KEY_PREFIX}"},
        ],
        "outputClaimToHeaders": [{"header": CALLER_HEADER, "claim": "sub"}],
        "forwardOriginalToken": False,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": TOKENS_KIND,
        "metadata": {
            "name": TOKENS_NAME,
            "namespace": context.gateway_namespace,
            "labels": dict(MANAGED_BY),
        },
        "spec": {
            "targetRefs": [_gateway(context)],
            "jwtRules": [{"issuer": one.name, "jwks": one.jwks, **rule} for one in issuers],
        },
    }


def access(context: ManifestContext, principals: Sequence[str]) -> Manifest:
    """Deny each path of the deployment's route to everyone but `principals` (`issuer/subject`)."""
    prefix = http_route.path_prefix(context)
    others = {"from": [{"source": {"notRequestPrincipals": list(principals)}}]}
    who = others if principals else {}
    named = {
        "key": f"request.headers[{http_route.GRPC_HEADER}]",
        "values": [http_route.grpc_header(context)],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": ACCESS_KIND,
        "metadata": {
            **metadata(context, f"{context.namespace}.{context.deployment}"),
            "namespace": context.gateway_namespace,
        },
        "spec": {
            "targetRefs": [_gateway(context)],
            "action": "DENY",
            "rules": [
                {**who, "to": [{"operation": {"paths": [prefix, f"{prefix}/*"]}}]},
                {**who, "to": [{"operation": {"paths": [_GRPC_PATHS]}}], "when": [named]},
            ],
        },
    }


def _gateway(context: ManifestContext) -> dict[str, str]:
    return {
        "group": http_route.API_VERSION.partition("/")[0],
        "kind": "Gateway",
        "name": context.gateway_name,
    }
