"""Cordon and uncordon: whether the scheduler may place pods on a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleet.actions.domain import outcomes
from fleet.actions.domain.evidence import Evidence, FieldChange
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.domain.progress import Progress
from fleet.actions.services import node_facts
from fleet.kube.services import nodes
from fleet.models import FleetAction
from portal.core.errors import Conflict


def observe(action: FleetAction, *, is_schedulable: bool) -> Evidence:
    node = node_facts.present_node(action)
    if node.is_schedulable == is_schedulable:
        state = "schedulable" if is_schedulable else "cordoned"
        raise Conflict(f"{node} is already {state}.", code="no_change")
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
    progress = Progress.from_json(action.progress)
    if progress.was_schedulable is None:
        return keep_state_before(progress, live)
    if schedulable(live) == is_schedulable:
        done = "New pods may start here." if is_schedulable else "No new pods start here."
        return outcomes.finish(done)
    set_schedulable(action, is_schedulable=is_schedulable)
    return outcomes.go_on("Changed the node.", after_seconds=0)


def revert(action: FleetAction) -> Outcome:
    """Restore whether it is schedulable; pods that were evicted already run elsewhere."""
    live = live_node(action)
    if isinstance(live, Outcome):
        return outcomes.finish("The node left the cluster.")
    before = Progress.from_json(action.progress).was_schedulable
    if before is None or schedulable(live) == before:
        return outcomes.finish("The node is back in its previous state.")
    set_schedulable(action, is_schedulable=before)
    return outcomes.go_on("Reverted the node.", after_seconds=0)


def live_node(action: FleetAction) -> dict[str, Any] | Outcome:
    """Return the node as the cluster has it, or the end of an action whose node is gone."""
    live = nodes.get(cluster_id=action.cluster_id, name=action.target)
    if live is None:
        return outcomes.fail(f"{action.target} left the cluster.")
    if live["metadata"]["uid"] != uid_of(action):
        message = (
            f"{action.target} was replaced by another node of its name, which was not touched."
        )
        return outcomes.fail(message)
    return live


def keep_state_before(progress: Progress, live: dict[str, Any]) -> Outcome:
    """Store whether the node was schedulable before the action has any effect, so that it can be restored."""
    kept = replace(progress, was_schedulable=schedulable(live))
    return outcomes.go_on("Read the node.", kept, after_seconds=0)


def schedulable(live: dict[str, Any]) -> bool:
    return not (live.get("spec") or {}).get("unschedulable", False)


def set_schedulable(action: FleetAction, *, is_schedulable: bool) -> None:
    body = {"spec": {"unschedulable": None if is_schedulable else True}}
    nodes.patch(cluster_id=action.cluster_id, name=action.target, uid=uid_of(action), body=body)


def uid_of(action: FleetAction) -> str:
    return action.node.uid if action.node else ""
