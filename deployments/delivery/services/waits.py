"""The time until a deployment is reconciled again after a pass."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from deployments.delivery.services.reconcile_state import ReconcileState
from portal.core import clock

MOVING_SECONDS: Final = 3.0
COMMITTED_SECONDS: Final = 10.0
# Something that the cluster rejected is sent again after this long: someone must change something first.
REFUSED_SECONDS: Final = 10.0
# While a watcher reports every change, the next pass is only a safety net.
_SETTLED_SECONDS: Final = 300.0
_UNWATCHED_SECONDS: Final = 30.0
_WATCH_IS_FRESH: Final = timedelta(seconds=60)


def after(state: ReconcileState, *, is_settled: bool) -> float:
    if not is_settled:
        return MOVING_SECONDS
    if state.policy_refusal is not None:
        return REFUSED_SECONDS
    seen_at = state.deployment.cluster.watch_seen_at
    is_watched = seen_at is not None and clock.now() - seen_at < _WATCH_IS_FRESH
    return _SETTLED_SECONDS if is_watched else _UNWATCHED_SECONDS
