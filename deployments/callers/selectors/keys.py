"""Read callers and their keys. Nobody reads a key again."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from deployments.callers.domain import token_windows
from deployments.callers.domain.token_windows import TokenLimits, TokenUse
from deployments.callers.selectors import gateway_state
from deployments.callers.selectors.gateway_state import GatewayKeysState
from deployments.models import CallerKey, Deployment, KeyTokens
from deployments.serving.selectors import deployments
from portal.accounts.policy import Actor
from portal.core import clock, sealing

logger = logging.getLogger(__name__)

SEALED: Final = "keys of callers"


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key as people see it. `state` is active, ending (replaced, in its overlap), expired or revoked."""

    row: CallerKey
    state: str
    use: TokenUse
    # Of all keys of the deployment together; None as `gateway_state.read` says, and where it was not asked for.
    gateway: GatewayKeysState | None = None

    @property
    def is_open(self) -> bool:
        return self.state in ("active", "ending")

    @property
    def is_paused(self) -> bool:
        return self.is_open and self.row.paused_until is not None

    @property
    def limit_lines(self) -> list[str]:
        stated = (
            (self.row.requests_per_minute, "requests a minute"),
            (self.row.tokens_per_minute, "tokens a minute"),
            (self.row.tokens_per_day, "tokens a day"),
        )
        return [f"{limit:,} {unit}" for limit, unit in stated if limit is not None]

    @property
    def use_lines(self) -> list[str]:
        """The tokens used against each limit, for a key that is open."""
        used = (
            (self.use.minute_tokens, self.row.tokens_per_minute, "this minute"),
            (self.use.day_tokens, self.row.tokens_per_day, "today"),
        )
        return [
            f"{tokens:,} of {limit:,} tokens used {when}"
            for tokens, limit, when in used
            if limit is not None and self.is_open
        ]

    @property
    def ended_at(self) -> datetime:
        return self.row.ended_at or self.row.ends_at


def list_visible(*, actor: Actor, deployment_id: int) -> tuple[Deployment, list[KeyView]]:
    """Return the deployment and its keys, the newest first. Raises NotFound."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    gateway = gateway_state.read(deployment)
    return deployment, [replace(view, gateway=gateway) for view in list_of(deployment)]


def list_of(deployment: Deployment) -> list[KeyView]:
    at = clock.now()
    rows = CallerKey.objects.filter(deployment=deployment, pipeline_key=None).select_related(
        "consumer", "created_by", "tokens", "signing_key", "token_issuer"
    )
    return [view_of(row, at) for row in rows]


def pipelines_of(deployment: Deployment) -> list[str]:
    """List the pipelines that call this deployment with a key of their own, sorted."""
    rows = CallerKey.objects.filter(
        deployment=deployment, ended_at=None, pipeline_key__isnull=False
    )
    return sorted(set(rows.values_list("pipeline_key__pipeline__name", flat=True)))


def view_of(row: CallerKey, at: datetime) -> KeyView:
    return KeyView(row, state_of(row, at), _use_of(row, at))


def view_with_gateway(row: CallerKey) -> KeyView:
    """Show a key that was just changed, with whether the gateway has it."""
    deployment = Deployment.objects.select_related("stable_revision").get(pk=row.deployment_id)
    return replace(view_of(row, clock.now()), gateway=gateway_state.read(deployment))


def _use_of(row: CallerKey, at: datetime) -> TokenUse:
    try:
        tokens = row.tokens
    except KeyTokens.DoesNotExist:
        return token_windows.nothing(at)
    use = TokenUse(tokens.minute, tokens.minute_tokens, tokens.day, tokens.day_tokens)
    limits = TokenLimits(row.tokens_per_minute, row.tokens_per_day)
    return token_windows.at_time(use, limits, at)


def state_of(row: CallerKey, at: datetime) -> str:
    if row.is_revoked:
        return "revoked"
    if row.ended_at is not None or row.ends_at <= at:
        return "expired"
    return "active" if row.rotated_at is None else "ending"


def read_current_keys(pks: Collection[int]) -> dict[int, dict[str, str]]:
    """Return the current keys for the gateway by deployment, by the name that models get in place of the key.

    A key that the portal's secret key no longer opens is left out: its caller is refused.
    """
    keys: dict[int, dict[str, str]] = {}
    rows = CallerKey.objects.filter(
        deployment__in=pks, ended_at=None, ends_at__gt=clock.now(), token_issuer=None
    )
    for row in rows.select_related("consumer"):
        try:
            plain = sealing.unseal(SEALED, row.sealed)
        except sealing.UnreadableSecret:
            logger.warning("unreadable caller key id=%s deployment=%s", row.pk, row.deployment_id)
            continue
        keys.setdefault(row.deployment_id, {})[row.client] = plain
    return keys
