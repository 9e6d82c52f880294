"""Cordon and uncordon: whether the scheduler may place pods on a node."""

from __future__ import annotations

from typing import Any, Final

from fleet.actions.domain import outcomes
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.services import node_facts
from fleet.kube.services import nodes
from fleet.models import FleetAction
from portal.core.errors import Conflict

# What the node was before the first effect, so that it can be restored.
WAS_SCHEDULABLE: Final = "was_schedulable"


def observe(action: FleetAction, *, is_schedulable: bool) -> Evidence:
    node = node_facts.present_node(action)
    if node.is_schedulable == is_schedulable:
        state = "schedulable" if is_schedulable else "cordoned"
        raise Conflict(f"{node} is {state} already.", code="no_change")
    node_facts.require_permissions(action, node_facts.PATCH_NODES)
    before, after = ("no", "yes") if is_schedulable else ("yes", "no")
    return Evidence(
        changes=(FieldChange("New pods may start here", before, after),),
        deployments=node_facts.deployments_on(node),
        usd_per_hour_before=node_facts.usd_per_hour(node),
        usd_per_hour_after=node_facts.usd_per_hour(node),
        bound={"node": node.uid},
    )


def advance(action: FleetAction, *, is_schedulable: bool) -> Outcome:
    live = live_node(action)
    if isinstance(live, Outcome):
        return live
    progress = with_state_before(action, live)
    if progress != action.progress:
        return outcomes.goes_on("Read the node.", progress, after_seconds=0)
    if schedulable(live) == is_schedulable:
        done = "New pods may start here." if is_schedulable else "No new pods start here."
        return outcomes.done(done, progress)
    set_schedulable(action, is_schedulable=is_schedulable)
    return outcomes.goes_on("Changed the node.", progress, after_seconds=0)


def revert(action: FleetAction) -> Outcome:
    """Restore whether it is schedulable; pods that were evicted already run elsewhere."""
    live = live_node(action)
    if isinstance(live, Outcome):
        return outcomes.done("The node left the cluster.", action.progress)
    before = action.progress.get(WAS_SCHEDULABLE, schedulable(live))
    if schedulable(live) == before:
        return outcomes.done("The node is as it was before.", action.progress)
    set_schedulable(action, is_schedulable=before)
    return outcomes.goes_on("Changed the node back.", action.progress, after_seconds=0)


def live_node(action: FleetAction) -> dict[str, Any] | Outcome:
    """The node as the cluster has it, or the end of an action whose node is gone."""
    live = nodes.get(cluster_id=action.cluster_id, name=action.target)
    if live is None:
        return outcomes.failed(f"{action.target} left the cluster.", action.progress)
    if live["metadata"]["uid"] != uid_of(action):
        message = (
            f"{action.target} was replaced by another node of its name, which was not touched."
        )
        return outcomes.failed(message, action.progress)
    return live


def with_state_before(action: FleetAction, live: dict[str, Any]) -> dict[str, Any]:
    """The progress with what the node was before the first effect: written before there is one."""
    return {WAS_SCHEDULABLE: schedulable(live), **action.progress}


def schedulable(live: dict[str, Any]) -> bool:
    return not (live.get("spec") or {}).get("unschedulable", False)


def set_schedulable(action: FleetAction, *, is_schedulable: bool) -> None:
    body = {"spec": {"unschedulable": None if is_schedulable else True}}
    nodes.patch(cluster_id=action.cluster_id, name=action.target, uid=uid_of(action), body=body)


def uid_of(action: FleetAction) -> str:
    return action.node.uid if action.node else ""
