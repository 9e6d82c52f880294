"""The keys of a deployment's callers at the gateway: Envoy Gateway's SecurityPolicy, and its Secret.

The Secret is no part of what is approved, shown or committed to Git: only who may create keys decides
about it, and it holds the keys themselves.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import Manifest, ManifestContext, metadata

API_VERSION: Final = "gateway.envoyproxy.io/v1alpha1"
KIND: Final = "SecurityPolicy"
# The client of OpenAI's API sends `Authorization: Bearer …`, of which the gateway takes the key.
HEADERS: Final = ("x-api-key", "Authorization")
# What models and their logs get instead of the key.
CALLER_HEADER: Final = "slipway-caller"


# On the route: which state of the keys it was written with. Absent where the address is open.
_ANNOTATION: Final = "slipway.dev/caller-keys"


def annotated(route: Manifest, keys: str) -> Manifest:
    """The route as it is written; `keys` is empty where it is open."""
    if not keys:
        return route
    return {**route, "metadata": {**route["metadata"], "annotations": {_ANNOTATION: keys}}}


def keys_in(route: Mapping[str, Any] | None) -> str:
    """The state of the keys that the live route was written with; empty where it is open."""
    annotations = (route or {}).get("metadata", {}).get("annotations") or {}
    return str(annotations.get(_ANNOTATION, ""))


def is_refused(policy: Mapping[str, Any]) -> bool:
    """Whether the gateway reports that it cannot follow the policy, for example without its Secret."""
    conditions = [
        condition
        for ancestor in (policy.get("status") or {}).get("ancestors") or ()
        for condition in ancestor.get("conditions") or ()
    ]
    return any(c["type"] == "Accepted" and c["status"] == "False" for c in conditions)


def secret_name(deployment: str) -> str:
    return f"{deployment}-callers"


def policy(context: ManifestContext) -> Manifest:
    route = {
        "group": http_route.API_VERSION.partition("/")[0],
        "kind": http_route.KIND,
        "name": context.deployment,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(context, context.deployment),
        "spec": {
            "targetRefs": [route],
            "apiKeyAuth": {
                "credentialRefs": [{"name": secret_name(context.deployment)}],
                "extractFrom": [{"headers": list(HEADERS)}],
                "forwardClientIDHeader": CALLER_HEADER,
                "sanitize": True,
            },
        },
    }


def secret(context: ManifestContext, keys: Mapping[str, str]) -> Manifest:
    """`keys` by the name of the caller. Without any the gateway serves nobody."""
    data = {name: base64.b64encode(key.encode()).decode() for name, key in sorted(keys.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": metadata(context, secret_name(context.deployment)),
        "data": data,
    }
