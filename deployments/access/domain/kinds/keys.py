"""Callers with a key that the portal created for this deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.access.domain.callers import Callers
from deployments.access.domain.headers import CALLER_HEADER, HEADERS
from deployments.access.domain.kind import AccessKind
from fleet.clusters.domain.capabilities import Offer


class Keys(AccessKind):
    name = "keys"
    label = "Callers with a key"
    noun = "Keys"
    description = "Only callers with a key can call it."
    requirement = "Callers need a key."
    option = "caller-keys"
    fix = (
        "Set {path} to open if anyone who reaches the gateway may call it, or ask a "
        "platform admin for Envoy Gateway 1.5 or newer, or Istio 1.22 or newer."
    )
    creation_help = (
        "Callers send it as `x-api-key`, or as `Authorization: Bearer`. The gateway asks for "
        "keys where the spec has network.access keys."
    )
    serves_team_address = True
    takes_pipeline_key = True
    curl_arguments = '-H "x-api-key: $KEY" '
    key_header = "x-api-key"

    def security(self, callers: Callers) -> Mapping[str, Any]:
        return {
            "apiKeyAuth": {
                "credentialRefs": [{"name": callers.secret}],
                "extractFrom": [{"headers": list(HEADERS)}],
                "forwardClientIDHeader": CALLER_HEADER,
                "sanitize": True,
            }
        }

    def route_state(self, generation: int, issuer: str) -> str:
        return str(generation)

    def why_not_callable_by_pipeline(self, deployment: str, cluster: str, offer: Offer) -> str:
        if offer.ok:
            return ""
        return f"{deployment} needs a key, and pipelines on {cluster} have none. {offer.why}"


KIND: Final = Keys()
