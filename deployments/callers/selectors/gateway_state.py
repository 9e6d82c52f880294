"""The state of a deployment's keys and limits at the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from deployments.manifests.domain.access.limit_rules import MOST_RULES
from deployments.manifests.selectors import caller_access, rendering
from deployments.models import Deployment, KeysAtGateway


@dataclass(frozen=True, slots=True)
class GatewayKeysState:
    """The state of keys and limits at the gateway. `written_at` is None if the cluster has not taken any since they
    changed; `problem` says why it refused them.
    """

    is_current: bool
    changed_at: datetime | None
    written_at: datetime | None
    problem: str = ""
    is_limit: bool = False
    # Callers for whose limits the gateway has no room.
    left_out: tuple[str, ...] = ()

    @property
    def room(self) -> str:
        """The reason why limits are left out. Empty if none is."""
        if not self.left_out:
            return ""
        names = ", ".join(self.left_out)
        return (
            f"It takes {MOST_RULES} rules for one address, so limits of {names} are not enforced."
        )


def read(deployment: Deployment) -> GatewayKeysState | None:
    """Return whether the gateway has the latest keys. None if the address is open or no key was changed yet."""
    spec = rendering.stable_spec_of(deployment)
    if spec is None or spec.network.access_kind.opens_to_everyone or deployment.is_retired:
        return None
    row = KeysAtGateway.objects.filter(deployment=deployment).first()
    if row is None:
        return None
    return GatewayKeysState(
        is_current=row.written_generation >= deployment.caller_keys_generation,
        changed_at=row.changed_at,
        written_at=row.written_at,
        problem=row.problem,
        is_limit=row.is_limit,
        left_out=tuple(caller_access.limits(deployment, spec.network.token_issuer).left_out),
    )
