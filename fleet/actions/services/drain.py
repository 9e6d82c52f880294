"""Drain: cordon the node, then evict its pods as their disruption budgets allow, until none remains."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from fleet.actions.domain import node_pods, outcomes
from fleet.actions.domain.drain_settings import DrainSettings
from fleet.actions.domain.evidence import Evidence, FieldChange, HeldBudget
from fleet.actions.domain.node_pods import NodePod, NodePods
from fleet.actions.domain.outcomes import Outcome
from fleet.actions.domain.progress import BlockedPod, Progress
from fleet.actions.services import cordon, node_facts
from fleet.capacity.services import drain_preview
from fleet.capacity.services.drain_preview import NodeDrain
from fleet.kube.domain import eviction
from fleet.kube.domain.errors import ClusterError, Throttled, Unreachable
from fleet.kube.services import nodes
from fleet.models import FleetAction
from portal.accounts.policy import SYSTEM
from portal.core.definitions.counts import format_count

# For each pass, so that its lease never ends before it does.
_MOST_EVICTIONS: Final = 20
# This many consecutive calls without an answer mean that the cluster is unreachable.
_MAX_UNANSWERED: Final = 3
_MOST_NAMED: Final = 10
_TERMINATING_SECONDS: Final = 5.0
_NO_CONTROLLER: Final = "No controller starts it again."


def observe(action: FleetAction) -> Evidence:
    node = node_facts.present_node(action)
    node_facts.require_permissions(action, node_facts.PATCH_NODES, node_facts.EVICT_PODS)
    drain = drain_preview.preview(actor=SYSTEM, node_id=node.pk)
    deployments = node_facts.list_affected_deployments(drain.preview)
    return Evidence(
        changes=(
            FieldChange("New pods may start here", "yes" if node.is_schedulable else "no", "no"),
        ),
        deployments=deployments,
        budgets=tuple(
            HeldBudget(row.budget.namespace, row.budget.name, row.pods, row.hold.value)
            for row in drain.preview.budgets or ()
        ),
        warnings=tuple(_warnings(action, drain)),
        usd_per_hour_before=drain.usd_per_hour_amount,
        usd_per_hour_after=drain.usd_per_hour_amount,
        bound={
            "node": node.uid,
            "deployments": sorted({f"{row.team_slug}/{row.deployment}" for row in deployments}),
        },
    )


def _warnings(action: FleetAction, drain: NodeDrain) -> list[str]:
    warnings = [f"Disruption budgets are not known: {drain.problem}"] if drain.problem else []
    try:
        pods = node_pods.sort_pods(
            nodes.list_pods(cluster_id=action.cluster_id, name=action.target)
        )
    except ClusterError as error:
        return [*warnings, f"The pods on the node are not known: {error}"]
    if pods.unmanaged:
        warnings.append(_describe_unmanaged(action, pods))
    if pods.kept:
        warnings.append(_describe_kept(len(pods.kept)))
    return warnings


def advance(action: FleetAction) -> Outcome:
    live = cordon.live_node(action)
    if isinstance(live, Outcome):
        return live
    progress = Progress.from_json(action.progress)
    if progress.was_schedulable is None:
        return cordon.keep_state_before(progress, live)
    pods = node_pods.sort_pods(nodes.list_pods(cluster_id=action.cluster_id, name=action.target))
    if pods.unmanaged and not DrainSettings.from_json(action.parameters).evict_unmanaged:
        named = tuple(BlockedPod(str(pod), _NO_CONTROLLER) for pod in pods.unmanaged)
        return outcomes.fail(
            _describe_unmanaged(action, pods), replace(progress, blocked=named[:_MOST_NAMED])
        )
    if cordon.schedulable(live):
        # Also when somebody uncordoned it meanwhile: else evicted pods would come back.
        cordon.set_schedulable(action, is_schedulable=False)
        return outcomes.go_on("Cordoned the node.", after_seconds=0)
    # The number of the first pass stays.
    progress = replace(progress, pods=progress.pods or pods.remaining, remaining=pods.remaining)
    if not pods.remaining:
        return outcomes.finish("All pods are evicted.", replace(progress, blocked=()))
    return _evict(action, pods, progress)


@dataclass
class _Pass:
    """One pass over the pods: what it evicted, and what kept it from evicting others."""

    evicted: int = 0
    blocked: list[BlockedPod] = field(default_factory=list)
    wait_seconds: float = 0.0
    silences: int = 0

    def block(self, pod: NodePod, why: str, *, seconds: float) -> None:
        self.blocked.append(BlockedPod(str(pod), why))
        self.wait_seconds = max(self.wait_seconds, seconds)


def _evict(action: FleetAction, pods: NodePods, progress: Progress) -> Outcome:
    result = _Pass()
    # From where the last pass ended: pods that a budget blocks must not delay the others.
    first = progress.first % max(len(pods.to_evict), 1)
    ordered = (*pods.to_evict[first:], *pods.to_evict[:first])
    for pod in ordered[:_MOST_EVICTIONS]:
        _evict_one(action, pod, result)
    progress = replace(
        progress,
        blocked=tuple(result.blocked[:_MOST_NAMED]),
        evicted=progress.evicted + result.evicted,
        first=first + len(result.blocked),
    )
    message = f"{pods.remaining} of {format_count(progress.pods, 'pod')} left."
    if result.blocked:
        message += f" {len(result.blocked)} cannot be evicted now."
    wait = max(result.wait_seconds, _TERMINATING_SECONDS)
    return outcomes.go_on(message, progress, after_seconds=wait)


def _evict_one(action: FleetAction, pod: NodePod, made: _Pass) -> None:
    try:
        nodes.evict(
            cluster_id=action.cluster_id, namespace=pod.namespace, pod=pod.name, uid=pod.uid
        )
    except Throttled as error:
        why = eviction.budget_refusal(error)
        if not why:
            raise
        made.block(pod, why, seconds=max(outcomes.RETRY_SECONDS, error.retry_after_seconds))
    except Unreachable as error:
        # Also the answer for a pod that two budgets cover.
        made.silences += 1
        if made.silences >= _MAX_UNANSWERED:
            raise
        made.block(pod, error.message, seconds=outcomes.RETRY_SECONDS)
    else:
        made.evicted += 1


def _describe_kept(count: int) -> str:
    """Describe how many protected pods are evicted. It names none: everyone may read it, and pods belong to teams."""
    is_one = count == 1
    return (
        f"{format_count(count, 'pod')} {'is' if is_one else 'are'} declared not to be disrupted "
        "(karpenter.sh/do-not-disrupt): Karpenter leaves "
        f"{'it' if is_one else 'them'} in place, and this drain evicts {'it' if is_one else 'them'} anyway."
    )


def _describe_unmanaged(action: FleetAction, pods: NodePods) -> str:
    """Describe the pods without a controller by count only: everyone may read it, and pod names belong to teams."""
    count = len(pods.unmanaged)
    have = f"{format_count(count, 'pod')} {'has' if count == 1 else 'have'}"
    if DrainSettings.from_json(action.parameters).evict_unmanaged:
        return f"{have} no controller: evicting deletes it for good."
    return f"{have} no controller that starts it again. Request the drain with “Evict pods without a controller”."
