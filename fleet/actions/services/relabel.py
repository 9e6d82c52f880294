"""Drain a node, set a label that an agent on it acts on, wait for the agent, and let pods start again.

Whoever fails or is canceled after the label was set leaves the node cordoned: nobody knows what it offers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from fleet.actions.domain import outcomes, relabeling
from fleet.actions.domain.outcomes import Outcome, Result
from fleet.actions.domain.progress import Progress
from fleet.actions.domain.relabeling import RelabelSettings
from fleet.actions.services import cordon, drain
from fleet.kube.services import nodes
from fleet.models import FleetAction

# What the agent needs after the drain: a MIG manager may reboot the node.
_AFTER_DRAIN: Final = timedelta(minutes=45)
Judge = Callable[[FleetAction, Mapping[str, Any]], Outcome]


def time_limit(action: FleetAction) -> timedelta:
    return RelabelSettings.from_json(action.parameters).drain.time_limit + _AFTER_DRAIN


def advance(action: FleetAction, labels: Mapping[str, str | None], judge: Judge) -> Outcome:
    """Make one pass. `judge` says whether the agent on the labeled node is done, has failed, or goes on."""
    live = cordon.live_node(action)
    if isinstance(live, Outcome):
        return live
    progress = Progress.from_json(action.progress)
    if progress.was_schedulable is None:
        return cordon.keep_state_before(progress, live)
    if not progress.is_labeled:
        return _drain_then_label(action, live, labels)
    if progress.judged:
        return _take_pods(action, live, progress)
    return _await_agent(action, live, judge)


def _await_agent(action: FleetAction, live: dict[str, Any], judge: Judge) -> Outcome:
    if cordon.schedulable(live):
        # Somebody uncordoned it meanwhile: pods would hold the GPUs that the agent needs.
        cordon.set_schedulable(action, is_schedulable=False)
        return outcomes.go_on("Cordoned the node.", after_seconds=0)
    judged = judge(action, live)
    if judged.result is not Result.DONE:
        return judged
    progress = replace(Progress.from_json(action.progress), judged=judged.message)
    return outcomes.go_on(judged.message, progress, after_seconds=0)


def _take_pods(action: FleetAction, live: dict[str, Any], progress: Progress) -> Outcome:
    message = progress.judged
    if not progress.was_schedulable:
        return outcomes.finish(f"{message} It was cordoned before and stays cordoned.")
    if cordon.schedulable(live):
        return outcomes.finish(message)
    cordon.set_schedulable(action, is_schedulable=True)
    return outcomes.go_on("The node takes pods again.", after_seconds=0)


def _drain_then_label(
    action: FleetAction, live: Mapping[str, Any], labels: Mapping[str, str | None]
) -> Outcome:
    drained = drain.advance(action)
    if drained.result is not Result.DONE:
        return drained
    kept = drained.progress or Progress.from_json(action.progress)
    labeled = replace(kept, is_labeled=True)
    current = relabeling.labels_of(live)
    desired = {name: value for name, value in labels.items() if value is not None}
    if desired.items() <= current.items():
        return outcomes.go_on("The label is set.", labeled, after_seconds=0)
    body = {"metadata": {"labels": dict(labels)}}
    nodes.patch(
        cluster_id=action.cluster_id, name=action.target, uid=cordon.uid_of(action), body=body
    )
    return outcomes.go_on("The label is set.", labeled)


def revert(action: FleetAction) -> Outcome:
    """Restore the node if the label is not set yet. Afterwards its agent works on it, so it stays cordoned."""
    if not Progress.from_json(action.progress).is_labeled:
        return cordon.revert(action)
    message = "The label was already set, so the node stays cordoned. Uncordon it when it offers what it should."
    return outcomes.finish(message)


def fail_cordoned(action: FleetAction, message: str) -> Outcome:
    return outcomes.fail(f"{message} The node stays cordoned.")


def waits(action: FleetAction, message: str) -> Outcome:
    return outcomes.go_on(message, after_seconds=outcomes.RETRY_SECONDS)
