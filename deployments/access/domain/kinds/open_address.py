"""Everyone gets answers: the route has no policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.access.domain.callers import Callers
from deployments.access.domain.kind import AccessKind
from fleet.clusters.domain.capabilities import Offer


class OpenAddress(AccessKind):
    name = "open"
    label = "Everyone who reaches the gateway"
    noun = "An open address"
    description = "Everyone who reaches the gateway gets answers, without a key."
    requirement = "Callers need nothing."
    opens_to_everyone = True
    counts_by_caller = False

    def security(self, callers: Callers) -> Mapping[str, Any]:
        return {}

    def route_state(self, generation: int, issuer: str) -> str:
        return ""

    def describe_need(self, issuer: str) -> str:
        return "the address is open"

    def why_not_callable_by_pipeline(self, deployment: str, cluster: str, offer: Offer) -> str:
        return ""


KIND: Final = OpenAddress()
