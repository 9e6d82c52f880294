"""Pause keys that used more tokens than their limits, and let them go on when their time has come.

The gateway counts tokens after each answer and the portal reads the count, so a limit is enforced some seconds
late: what passes meanwhile counts, and is made up for (`token_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.db import transaction

from deployments.callers.domain import token_windows
from deployments.callers.domain.token_windows import TokenLimits, TokenUse
from deployments.models import CallerKey, KeyTokens
from deployments.serving.services import desired_state
from portal.core import clock

_BATCH: Final = 200


def record(*, cluster_id: int, tokens: Mapping[int, int]) -> None:
    """Count the tokens of each key since the last reading."""
    at = clock.now()
    used = {pk: count for pk, count in tokens.items() if count}
    keys = CallerKey.objects.filter(
        pk__in=used, deployment__cluster_id=cluster_id, ended_at=None
    ).select_related("deployment")
    for key in keys:
        _add(key, used[key.pk], at)


def resume_paused() -> int:
    """Resume keys whose pause has ended. Returns how many."""
    at = clock.now()
    rows = CallerKey.objects.filter(paused_until__lte=at, ended_at=None).select_related(
        "deployment"
    )
    resumed = 0
    for row in rows.order_by("paused_until")[:_BATCH]:
        with transaction.atomic():
            if CallerKey.objects.filter(pk=row.pk, paused_until__lte=at).update(paused_until=None):
                desired_state.change_caller_keys(row.deployment)
                resumed += 1
    return resumed


def reconsider(key: CallerKey) -> None:
    """Recompute the pause of a key after a change of its limits. Call inside the transaction of the change, which
    notifies the gateway.
    """
    use = KeyTokens.objects.filter(key=key).first()
    until = None if use is None else _until(_use_of(use), limits_of(key), clock.now())
    CallerKey.objects.filter(pk=key.pk).update(paused_until=until)
    key.paused_until = until


def limits_of(key: CallerKey) -> TokenLimits:
    return TokenLimits(key.tokens_per_minute, key.tokens_per_day)


def _add(key: CallerKey, tokens: int, at: datetime) -> None:
    limits = limits_of(key)
    with transaction.atomic():
        KeyTokens.objects.get_or_create(
            key=key,
            defaults={"minute": token_windows.minute_of(at), "day": token_windows.day_of(at)},
        )
        row = KeyTokens.objects.select_for_update().get(key=key)
        use = token_windows.add(_use_of(row), limits, tokens, at)
        KeyTokens.objects.filter(pk=row.pk).update(
            minute=use.minute,
            minute_tokens=use.minute_tokens,
            day=use.day,
            day_tokens=use.day_tokens,
        )
        until = _until(use, limits, at)
        if until is None or until == key.paused_until:
            return
        CallerKey.objects.filter(pk=key.pk).update(paused_until=until)
        if key.paused_until is None:
            desired_state.change_caller_keys(key.deployment)


def _use_of(row: KeyTokens) -> TokenUse:
    return TokenUse(row.minute, row.minute_tokens, row.day, row.day_tokens)


def _until(use: TokenUse, limits: TokenLimits, at: datetime) -> datetime | None:
    """Return until when the key is paused. None if it is not, or if the pause has ended."""
    until = token_windows.paused_until(token_windows.at_time(use, limits, at), limits)
    return until if until is not None and until > at else None
