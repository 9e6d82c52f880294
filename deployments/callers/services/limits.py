"""Limits of keys: which ones a gateway can hold, and their change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from typing import Any, Final

from django.db import transaction

from deployments import audit_actions
from deployments.callers.services import issuing, key_rows, limit_room, token_limits
from deployments.callers.services.issuing import KeyLimits
from deployments.manifests.selectors import rendering
from deployments.models import CallerKey, Deployment
from deployments.spec.domain.engines import OPENAI_ENGINES
from fleet.clusters.domain.capabilities import Capabilities
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Conflict, Invalid

MAX_REQUESTS_PER_MINUTE: Final = 1_000_000
MAX_TOKENS_PER_MINUTE: Final = 100_000_000
MAX_TOKENS_PER_DAY: Final = 100_000_000_000
_MOST: Final = {
    "requests_per_minute": (MAX_REQUESTS_PER_MINUTE, "requests a minute"),
    "tokens_per_minute": (MAX_TOKENS_PER_MINUTE, "tokens a minute"),
    "tokens_per_day": (MAX_TOKENS_PER_DAY, "tokens a day"),
}


def enforces_limits(deployment: Deployment) -> bool:
    return not issuing.is_signed(deployment)


def why_no_tokens(deployment: Deployment) -> str:
    """Return why tokens of the deployment's callers cannot be limited. Empty if they can."""
    spec = rendering.stable_spec_of(deployment)
    if spec is not None and spec.engine not in OPENAI_ENGINES:
        return f"{deployment} serves no language model, so nothing counts tokens."
    if not enforces_limits(deployment):
        return _not_enforced(deployment)
    offer = Capabilities.from_json(deployment.cluster.capabilities).offers("token-counts")
    return "" if offer.ok else offer.why


def check(deployment: Deployment, limits: KeyLimits) -> None:
    """Check the limits. Raises Invalid if one is out of bounds, or if the gateway does not enforce it."""
    for name, limit in asdict(limits).items():
        if limit is None:
            continue
        most, unit = _MOST[name]
        if not 1 <= limit <= most:
            message = f"The limit must be 1 to {most} {unit}, or empty for none."
            raise Invalid(message, fields={name: f"1 to {most}"})
        why = why_no_tokens(deployment) if name.startswith("tokens") else ""
        if not why and not enforces_limits(deployment):
            why = _not_enforced(deployment)
        if why:
            message = f"{why} Leave the limit of {unit} empty."
            raise Invalid(message, fields={name: "not enforced on this cluster"})


def set_limits(
    *,
    actor: User,
    deployment_id: int,
    key_id: int,
    limits: KeyLimits,
    only: Collection[str] = tuple(_MOST),
) -> CallerKey:
    """Change the limits of a key; None lifts a limit. Limits that `only` does not name stay as they are."""
    deployment = key_rows.changeable(actor, deployment_id)
    with transaction.atomic():
        row = key_rows.open_key(deployment, key_id, clock.now())
        before = KeyLimits.from_key(row)
        limits = replace(before, **{name: getattr(limits, name) for name in only})
        if before == limits:
            return row
        check(deployment, _new_in(limits, before))
        changed: dict[str, Any] = asdict(limits)
        issuer = row.token_issuer.name if row.token_issuer else ""
        with limit_room.require_room(deployment, issuer):
            if not CallerKey.objects.filter(pk=row.pk, ended_at=None).update(**changed):
                raise Conflict(f"The key {row} has already ended.", code="key_ended")
        for name, limit in changed.items():
            setattr(row, name, limit)
        token_limits.reconsider(row)
        key_rows.record(
            actor, audit_actions.CALLER_KEY_LIMITED, row, "limited", before=asdict(before)
        )
    return row


def _new_in(limits: KeyLimits, before: KeyLimits) -> KeyLimits:
    """Drop the limits that stay the same, so that one set while the cluster counted tokens does not block a change."""
    kept = {name for name in _MOST if getattr(limits, name) == getattr(before, name)}
    return replace(limits, **dict.fromkeys(kept))


def _not_enforced(deployment: Deployment) -> str:
    return f"The gateway of {deployment.cluster.name} enforces no limits of keys: Istio has none for a caller."
