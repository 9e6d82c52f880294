"""Read callers and their keys. Nobody reads a key again."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from deployments.models import CallerKey, Deployment
from deployments.serving.selectors import deployments
from portal.accounts.policy import Actor
from portal.core import clock, sealing

logger = logging.getLogger(__name__)

SEALED: Final = "keys of callers"


@dataclass(frozen=True, slots=True)
class KeyView:
    """`state` is active, ending (replaced, in its overlap), expired or revoked."""

    row: CallerKey
    state: str

    @property
    def is_open(self) -> bool:
        return self.state in ("active", "ending")

    @property
    def ended_at(self) -> datetime:
        return self.row.ended_at or self.row.ends_at


def list_visible(*, actor: Actor, deployment_id: int) -> tuple[Deployment, list[KeyView]]:
    """The newest first. Raises NotFound."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    return deployment, list_of(deployment)


def list_of(deployment: Deployment) -> list[KeyView]:
    rows = CallerKey.objects.filter(deployment=deployment).select_related("consumer", "created_by")
    at = clock.now()
    return [KeyView(row, state_of(row, at)) for row in rows]


def state_of(row: CallerKey, at: datetime) -> str:
    if row.is_revoked:
        return "revoked"
    if row.ended_at is not None or row.ends_at <= at:
        return "expired"
    return "active" if row.rotated_at is None else "ending"


def of_deployments(pks: Collection[int]) -> dict[int, dict[str, str]]:
    """By deployment: the current keys for the gateway, by the name that models get in their place.

    A key that the portal's secret key no longer opens is left out: its caller is refused.
    """
    keys: dict[int, dict[str, str]] = {}
    rows = CallerKey.objects.filter(deployment__in=pks, ended_at=None, ends_at__gt=clock.now())
    for row in rows.select_related("consumer"):
        try:
            plain = sealing.unseal(SEALED, row.sealed)
        except sealing.Unreadable:
            logger.warning("unreadable caller key id=%s deployment=%s", row.pk, row.deployment_id)
            continue
        keys.setdefault(row.deployment_id, {})[row.client] = plain
    return keys
