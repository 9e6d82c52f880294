"""The keys of a deployment's callers at the gateway, and their limits: Envoy Gateway's SecurityPolicy
with its Secret, and its BackendTrafficPolicy.

The Secret is no part of what is approved, shown or committed to Git: only who may create keys decides
about it, and it holds the keys themselves.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import Manifest, ManifestContext, metadata

API_VERSION: Final = "gateway.envoyproxy.io/v1alpha1"
KIND: Final = "SecurityPolicy"
LIMITS_KIND: Final = "BackendTrafficPolicy"

# On the route: which state of the keys it was written with. Absent where the address is open.
_ANNOTATION: Final = "slipway.dev/caller-keys"
# In its place where the cluster refused a policy: the address is closed, and its policies are written again.
UNWRITTEN: Final = "unwritten"


def annotate_route(route: Manifest, keys: str) -> Manifest:
    """Return the route as it is written; `keys` is empty where it is open."""
    if not keys:
        return route
    return {**route, "metadata": {**route["metadata"], "annotations": {_ANNOTATION: keys}}}


def keys_in(route: Mapping[str, Any] | None) -> str:
    """Return the state of the keys that the live route was written with. Empty where it is open."""
    annotations = (route or {}).get("metadata", {}).get("annotations") or {}
    return str(annotations.get(_ANNOTATION, ""))


@dataclass(frozen=True, slots=True)
class GatewayRefusal:
    """The reason that the gateway reports for not following a policy."""

    kind: str
    message: str
    # Another policy of the kind names the same route, and holds instead.
    is_conflict: bool
    # Of the team's address: the deployment's own is as it should be.
    is_shared: bool = False


def missing(kind: str) -> GatewayRefusal:
    """Return the refusal for a policy of the team's address that the cluster does not have."""
    message = "The cluster does not have it. The portal's role may lack permission to create it."
    return GatewayRefusal(kind, message, is_conflict=False, is_shared=True)


def refusal_of(policy: Mapping[str, Any], *, is_shared: bool = False) -> GatewayRefusal | None:
    """Return the refusal that the gateway reports for a policy. None where it follows the policy, or has not
    reported.
    """
    conditions = [
        condition
        for ancestor in (policy.get("status") or {}).get("ancestors") or ()
        for condition in ancestor.get("conditions") or ()
    ]
    for condition in conditions:
        if condition["type"] == "Accepted" and condition["status"] == "False":
            reason = condition.get("reason", "")
            message = condition.get("message") or reason
            is_conflict = reason == "Conflicted"
            return GatewayRefusal(
                policy["kind"], message, is_conflict=is_conflict, is_shared=is_shared
            )
    return None


def secret_name(deployment: str) -> str:
    return f"{deployment}-callers"


def policy(context: ManifestContext, security: Mapping[str, Any]) -> Manifest:
    """Render who may call: `security` is what the kind of access says of it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(context, context.deployment),
        "spec": {
            "targetRefs": [route_of(context)],
            **security,
        },
    }


def without_headers(route: Manifest, names: Sequence[str]) -> Manifest:
    """Return the route, each rule of which removes these headers of requests."""
    removed = {"remove": list(names)}
    modifier = {"type": "RequestHeaderModifier", "requestHeaderModifier": removed}
    rules = [
        {**rule, "filters": [*rule.get("filters", ()), modifier]} if "backendRefs" in rule else rule
        for rule in route["spec"]["rules"]
    ]
    return {**route, "spec": {**route["spec"], "rules": rules}}


def limits(context: ManifestContext, rules: Sequence[Mapping[str, Any]]) -> Manifest:
    """Render the policy of the callers' limits. There must be at least one rule.

    Each proxy counts for itself, and for each path and gRPC method of the address. What the platform's own
    policy for the whole Gateway says besides stays in force.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": LIMITS_KIND,
        "metadata": metadata(context, context.deployment),
        "spec": {
            "targetRefs": [route_of(context)],
            "mergeType": "StrategicMerge",
            "rateLimit": {"type": "Local", "local": {"rules": list(rules)}},
        },
    }


def route_of(context: ManifestContext) -> dict[str, str]:
    return {
        "group": http_route.API_VERSION.partition("/")[0],
        "kind": http_route.KIND,
        "name": context.deployment,
    }


def secret(context: ManifestContext, keys: Mapping[str, str]) -> Manifest:
    """Return the Secret with the keys by the name of the caller. Without any the gateway serves nobody."""
    data = {name: base64.b64encode(key.encode()).decode() for name, key in sorted(keys.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": metadata(context, secret_name(context.deployment)),
        "data": data,
    }
