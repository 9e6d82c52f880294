"""Everyone gets answers: the route has no policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.access.domain.callers import Callers
from deployments.access.domain.kind import AccessKind
from fleet.clusters.domain.capabilities import Offer


class OpenAddress(AccessKind):
    name = "open"
    label = "Public (no authentication)"
    noun = "A public address"
    description = "Anyone who reaches the gateway can call it, without a key."
    requirement = "Callers need no key."
    opens_to_everyone = True
    counts_by_caller = False

    def security(self, callers: Callers) -> Mapping[str, Any]:
        return {}

    def route_state(self, generation: int, issuer: str) -> str:
        return ""

    def describe_need(self, issuer: str) -> str:
        return "the address is public"

    def why_not_callable_by_pipeline(self, deployment: str, cluster: str, offer: Offer) -> str:
        return ""


KIND: Final = OpenAddress()
