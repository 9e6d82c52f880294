"""The handler of each kind of fleet action: a row here, a module with its effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fleet.actions.domain import outcomes
from fleet.actions.domain.drain_settings import DrainSettings
from fleet.actions.domain.evidence import Evidence
from fleet.actions.domain.kinds import ActionKind
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.services import (
    cordon,
    drain,
    gpu_sharing,
    mig,
    node_classes,
    node_groups,
    node_pools,
    office_hours,
    relabel,
)
from fleet.models import FleetAction

_A_PATCH: Final = timedelta(minutes=15)
# AWS starts the nodes of a group before its update ends.
_AN_UPDATE: Final = timedelta(hours=2)


def _keep(action: FleetAction) -> Outcome:
    """End a cancellation without taking anything back: nodes may have started or ended already."""
    message = "What was applied stays. Request another change to restore it."
    return outcomes.finish(message)


@dataclass(frozen=True, slots=True)
class Handler:
    """The handler of one kind of action. `observe` reads what the action would change and raises a DomainError
    where it cannot be done. `advance` and `revert` make one effect for each call, and any call may be repeated.
    """

    observe: Callable[[FleetAction], Evidence]
    advance: Callable[[FleetAction], Outcome]
    revert: Callable[[FleetAction], Outcome] = _keep
    time_limit: Callable[[FleetAction], timedelta] = lambda _: _A_PATCH


_HANDLERS: Final[Mapping[ActionKind, Handler]] = {
    ActionKind.CORDON: Handler(
        observe=lambda action: cordon.observe(action, is_schedulable=False),
        advance=lambda action: cordon.advance(action, is_schedulable=False),
        revert=cordon.revert,
    ),
    ActionKind.UNCORDON: Handler(
        observe=lambda action: cordon.observe(action, is_schedulable=True),
        advance=lambda action: cordon.advance(action, is_schedulable=True),
        revert=cordon.revert,
    ),
    ActionKind.DRAIN: Handler(
        observe=drain.observe,
        advance=drain.advance,
        revert=cordon.revert,
        time_limit=lambda action: DrainSettings.from_json(action.parameters).time_limit,
    ),
    ActionKind.CHANGE_NODE_POOL: Handler(
        observe=node_pools.observe_change,
        advance=node_pools.advance_change,
    ),
    ActionKind.CREATE_NODE_POOL: Handler(
        observe=node_pools.observe_creation,
        advance=node_pools.advance_creation,
    ),
    ActionKind.CHANGE_NODE_CLASS: Handler(
        observe=node_classes.observe_change,
        advance=node_classes.advance_change,
    ),
    ActionKind.CREATE_NODE_CLASS: Handler(
        observe=node_classes.observe_creation,
        advance=node_classes.advance_creation,
    ),
    ActionKind.SCALE_NODE_GROUP: Handler(
        observe=node_groups.observe,
        advance=node_groups.advance,
        time_limit=lambda _: _AN_UPDATE,
    ),
    ActionKind.SET_OFFICE_HOURS: Handler(
        observe=office_hours.observe,
        advance=office_hours.advance,
        revert=office_hours.revert,
    ),
    ActionKind.END_OFFICE_HOURS: Handler(
        observe=office_hours.observe_end,
        advance=office_hours.advance_end,
        revert=office_hours.revert_end,
        time_limit=lambda _: _AN_UPDATE,
    ),
    ActionKind.SET_MIG_LAYOUT: Handler(
        observe=mig.observe,
        advance=mig.advance,
        revert=relabel.revert,
        time_limit=relabel.time_limit,
    ),
    ActionKind.SET_GPU_SHARING: Handler(
        observe=gpu_sharing.observe,
        advance=gpu_sharing.advance,
        revert=relabel.revert,
        time_limit=relabel.time_limit,
    ),
}


def get_handler(action: FleetAction) -> Handler:
    return _HANDLERS[ActionKind(action.kind)]
