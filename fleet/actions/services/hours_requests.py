"""Requesting office hours of a node pool, and their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.actions.domain.kinds import ActionKind
from fleet.actions.services import requests
from fleet.models import FleetAction
from fleet.office_hours.domain.hours import OfficeHours
from fleet.office_hours.domain.sizes import PoolKind
from portal.accounts import fleet_policy
from portal.accounts.models import User
from portal.core.errors import Invalid


def request_office_hours(
    *,
    actor: User,
    cluster_id: int,
    kind: PoolKind,
    name: str,
    hours: OfficeHours,
    comment: str = "",
) -> FleetAction:
    """Request office hours for a pool, outside of which it has their `closed_size`."""
    fleet_policy.require_requester(actor)
    if problems := hours.problems():
        raise Invalid("The office hours are not valid.", fields=problems)
    action = _of_pool(actor, ActionKind.SET_OFFICE_HOURS, cluster_id, kind, name, hours.to_json())
    return requests.submit(actor, action, comment)


def request_office_hours_end(
    *, actor: User, cluster_id: int, kind: PoolKind, name: str, comment: str = ""
) -> FleetAction:
    """Request the end of office hours. The pool gets its size in office hours back."""
    fleet_policy.require_requester(actor)
    action = _of_pool(actor, ActionKind.END_OFFICE_HOURS, cluster_id, kind, name, {})
    return requests.submit(actor, action, comment)


def _of_pool(
    actor: User,
    action_kind: ActionKind,
    cluster_id: int,
    kind: PoolKind,
    name: str,
    parameters: Mapping[str, Any],
) -> FleetAction:
    return FleetAction(
        cluster=requests.get_cluster(cluster_id),
        kind=action_kind,
        target_kind=kind.value,
        target=name,
        parameters=dict(parameters),
        requester=actor,
    )
