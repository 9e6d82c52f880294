"""Register the badges and status lines of both domains with the frame."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.alerts.selectors import alerts
from deployments.batch.selectors import waiting as batch
from deployments.changes.selectors import changes, emergency_reviews
from fleet.actions.selectors import actions
from fleet.clusters.selectors import clusters
from portal.accounts.approvers import ApproverRights
from portal.accounts.models import User
from portal.ui.slots import (
    MOST_SHOWN,
    StatusLine,
    register_alert_count,
    register_badge,
    register_status,
)


def fill() -> None:
    register_badge("/approvals", _count_decisions)
    register_alert_count(alerts.count_open)
    register_status(_cluster_lines)


def _count_decisions(user: User) -> int:
    """Count the decisions up to what is shown: every page counts them."""
    rights = ApproverRights(user)
    count = changes.count_waiting_for(user, most=MOST_SHOWN + 1, rights=rights)
    if count <= MOST_SHOWN:
        count += emergency_reviews.count_waiting_for(user, rights)
        count += batch.count_waiting_for(user, rights)
        count += actions.count_waiting_for(user)
    return count


def _cluster_lines(user: User) -> Sequence[StatusLine]:
    return [
        _line(name, is_reachable=is_reachable)
        for name, is_reachable in clusters.list_reachability()
    ]


def _line(name: str, *, is_reachable: bool | None) -> StatusLine:
    if is_reachable is None:
        return StatusLine(f"{name} · not tested")
    if not is_reachable:
        return StatusLine(f"{name} · unreachable", "bad")
    return StatusLine(f"{name} · ok", "ok")
