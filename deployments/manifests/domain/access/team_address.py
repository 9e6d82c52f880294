"""The one address of a team's language models at Envoy Gateway. Pure functions.

A request is checked twice. The first route, which has no model and no backend, checks the keys of all members;
its script reads the model, refuses keys of other models, and sets the header by which Envoy then chooses the
route of a deployment. Where filters were put into another order the script runs first: it believes what the caller
wrote, and the keys of the deployment's own route are checked after it (ADR 67).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments.access.domain.headers import HEADERS
from deployments.manifests.domain import http_route, route_paths
from deployments.manifests.domain.access import caller_keys, team_script
from deployments.manifests.domain.access.team_script import RoutedDeployment
from deployments.manifests.domain.metadata import MANAGED_BY, Manifest, ManifestContext, metadata

# Shared by deployments: none of them has a dot in its name.
NAME: Final = "slipway.team-address"
LABEL: Final = "slipway.dev/team-address"
SCRIPT_KIND: Final = "EnvoyExtensionPolicy"
# A conversation with images is large, and read as a whole before its model is known.
_MOST_BYTES: Final = "32Mi"


def secret_name(deployment: str) -> str:
    return f"{deployment}-team-callers"


def secret(context: ManifestContext, keys: Mapping[str, str]) -> Manifest:
    """Return the Secret of one deployment for the team's address: its keys are the same as at its own address,
    and their names say whose they are.
    """
    data = {
        f"{context.deployment}.{client}": base64.b64encode(key.encode()).decode()
        for client, key in sorted(keys.items())
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": metadata(context, secret_name(context.deployment)),
        "data": data,
    }


def manifests(context: ManifestContext, members: Sequence[RoutedDeployment]) -> list[Manifest]:
    """Return the policies, then the route: a route without them would be open. `members` have their Secrets, at
    least one.
    """
    return [
        _policy(context, "SecurityPolicy", {"apiKeyAuth": _keys(members)}),
        _policy(context, caller_keys.LIMITS_KIND, {"requestBuffer": {"limit": _MOST_BYTES}}),
        _policy(context, SCRIPT_KIND, {"lua": [_lua(context, members)]}),
        _route(context),
    ]


def _keys(members: Sequence[RoutedDeployment]) -> dict[str, Any]:
    return {
        "credentialRefs": [{"name": secret_name(member.deployment)} for member in members],
        "extractFrom": [{"headers": list(HEADERS)}],
        "forwardClientIDHeader": team_script.ACCEPTED_HEADER,
        "sanitize": True,
    }


def _lua(context: ManifestContext, members: Sequence[RoutedDeployment]) -> dict[str, str]:
    return {"type": "Inline", "inline": team_script.script(context.namespace, members)}


def _route(context: ManifestContext) -> Manifest:
    """Return the route of all paths of the address, for requests that no model has a route for yet. The script
    answers those that never get one.
    """
    parent = {"name": context.gateway_name, "namespace": context.gateway_namespace}
    paths = [{"type": "Exact", "value": path} for path in route_paths.team_paths(context.namespace)]
    return {
        "apiVersion": http_route.API_VERSION,
        "kind": http_route.KIND,
        "metadata": _metadata(context),
        "spec": {
            "parentRefs": [parent],
            "rules": [{"matches": [{"path": path} for path in paths]}],
        },
    }


def _policy(context: ManifestContext, kind: str, spec: Mapping[str, Any]) -> Manifest:
    target = {
        "group": http_route.API_VERSION.partition("/")[0],
        "kind": http_route.KIND,
        "name": NAME,
    }
    return {
        "apiVersion": caller_keys.API_VERSION,
        "kind": kind,
        "metadata": _metadata(context),
        "spec": {"targetRefs": [target], **spec},
    }


def _metadata(context: ManifestContext) -> dict[str, Any]:
    labels = {**MANAGED_BY, "slipway.dev/team": context.team, LABEL: "true"}
    return {"name": NAME, "namespace": context.namespace, "labels": labels}
