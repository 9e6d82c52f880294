"""Requesting that something is done to the fleet. Nothing happens before another person approves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import IntegrityError, transaction

from fleet.actions.domain import evidence as evidence_rules
from fleet.actions.domain import pool_settings
from fleet.actions.domain.drain_settings import DEFAULT_MINUTES, DrainSettings
from fleet.actions.domain.evidence import Evidence
from fleet.actions.domain.kinds import ActionKind, TargetKind
from fleet.actions.domain.pool_settings import PoolSettings, problem_with_name
from fleet.actions.domain.relabeling import RelabelSettings
from fleet.actions.domain.states import OPEN, SUBMITTED_FOR, ActionState
from fleet.actions.services import audit_actions, handlers, node_groups, notifications, transitions
from fleet.capacity.selectors import node_details
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.node_groups import GroupSize
from fleet.clusters.domain.provisioner import Provisioner
from fleet.models import Cluster, FleetAction
from portal.accounts import fleet_policy
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

_LONGEST_COMMENT: Final = 2000


def request_cordon(*, actor: User, node_id: int, comment: str = "") -> FleetAction:
    return submit(actor, draft_for_node(actor, ActionKind.CORDON, node_id), comment)


def request_uncordon(*, actor: User, node_id: int, comment: str = "") -> FleetAction:
    return submit(actor, draft_for_node(actor, ActionKind.UNCORDON, node_id), comment)


def request_drain(
    *,
    actor: User,
    node_id: int,
    comment: str = "",
    deadline_minutes: int = DEFAULT_MINUTES,
    evict_unmanaged: bool = False,
) -> FleetAction:
    settings = DrainSettings(deadline_minutes, evict_unmanaged)
    if problems := settings.problems():
        raise Invalid("The settings of the drain are not valid.", fields=problems)
    action = draft_for_node(actor, ActionKind.DRAIN, node_id, settings.to_json())
    return submit(actor, action, comment)


def request_mig_layout(
    *,
    actor: User,
    node_id: int,
    layout: str,
    comment: str = "",
    deadline_minutes: int = DEFAULT_MINUTES,
    evict_unmanaged: bool = False,
) -> FleetAction:
    """Drain the node, let NVIDIA's MIG manager cut its GPUs, and let pods start again."""
    drain = DrainSettings(deadline_minutes, evict_unmanaged)
    action = _relabeled(actor, ActionKind.SET_MIG_LAYOUT, node_id, RelabelSettings(layout, drain))
    return submit(actor, action, comment)


def request_gpu_sharing(
    *,
    actor: User,
    node_id: int,
    config: str,
    comment: str = "",
    deadline_minutes: int = DEFAULT_MINUTES,
    evict_unmanaged: bool = False,
) -> FleetAction:
    """Drain the node, give its device plugin the configuration of this key, and let pods start again."""
    drain = DrainSettings(deadline_minutes, evict_unmanaged)
    action = _relabeled(actor, ActionKind.SET_GPU_SHARING, node_id, RelabelSettings(config, drain))
    return submit(actor, action, comment)


def _relabeled(
    actor: User, kind: ActionKind, node_id: int, settings: RelabelSettings
) -> FleetAction:
    if problems := settings.drain.problems():
        raise Invalid("The settings of the drain are not valid.", fields=problems)
    return draft_for_node(actor, kind, node_id, settings.to_json())


def request_pool_change(
    *, actor: User, cluster_id: int, name: str, settings: PoolSettings, comment: str = ""
) -> FleetAction:
    """Change a Karpenter NodePool: what `settings` does not name stays."""
    action = _of_pool(actor, ActionKind.CHANGE_NODE_POOL, cluster_id, name, settings)
    return submit(actor, action, comment)


def request_pool_creation(
    *, actor: User, cluster_id: int, name: str, settings: PoolSettings, comment: str = ""
) -> FleetAction:
    settings = replace(settings, node_class_kind=_node_class_kind(cluster_id))
    action = _of_pool(actor, ActionKind.CREATE_NODE_POOL, cluster_id, name, settings)
    return submit(actor, action, comment)


def _node_class_kind(cluster_id: int) -> str:
    labels = Capabilities.from_json(get_cluster(cluster_id).capabilities).node_labels
    is_auto_mode = labels.provisioner is Provisioner.AUTO_MODE
    return pool_settings.AUTO_MODE_NODE_CLASS if is_auto_mode else pool_settings.EC2_NODE_CLASS


def request_group_scale(
    *, actor: User, cluster_id: int, name: str, size: GroupSize, comment: str = ""
) -> FleetAction:
    """Scale a managed node group of EKS."""
    fleet_policy.require_requester(actor)
    if problems := node_groups.problems_with(size):
        raise Invalid("The size of the node group is not valid.", fields=problems)
    action = FleetAction(
        cluster=get_cluster(cluster_id),
        kind=ActionKind.SCALE_NODE_GROUP,
        target_kind=TargetKind.NODE_GROUP,
        target=name,
        parameters=size.to_json(),
        requester=actor,
    )
    return submit(actor, action, comment)


def get_cluster(cluster_id: int) -> Cluster:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        raise NotFound(f"Cluster {cluster_id} does not exist.")
    return cluster


def _of_pool(
    actor: User, kind: ActionKind, cluster_id: int, name: str, settings: PoolSettings
) -> FleetAction:
    fleet_policy.require_requester(actor)
    cluster = get_cluster(cluster_id)
    problems = settings.problems(is_new=kind is ActionKind.CREATE_NODE_POOL)
    if problem := problem_with_name(name):
        problems["name"] = problem
    if problems:
        raise Invalid("The settings of the node pool are not valid.", fields=problems)
    return FleetAction(
        cluster=cluster,
        kind=kind,
        target_kind=TargetKind.NODE_POOL,
        target=name,
        parameters=settings.to_json(),
        requester=actor,
    )


def draft_for_node(
    actor: User, kind: ActionKind, node_id: int, parameters: Mapping[str, Any] | None = None
) -> FleetAction:
    """Return the action as it would be requested, not stored."""
    fleet_policy.require_requester(actor)
    node = node_details.get_node(node_id)
    return FleetAction(
        cluster=node.cluster,
        kind=kind,
        target_kind=TargetKind.NODE,
        target=node.name,
        node=node,
        parameters=dict(parameters or {}),
        requester=actor,
    )


def observe(action: FleetAction) -> Evidence:
    """Return what the action would change now. Calls the cluster; raises what keeps the action from being requested."""
    return handlers.get_handler(action).observe(action)


def hash_evidence(action: FleetAction, evidence: Evidence) -> str:
    target = f"{action.cluster_id}/{action.target_kind}/{action.target}"
    return evidence_rules.hash_of(action.kind, target, action.parameters, evidence)


def submit(actor: User, action: FleetAction, comment: str) -> FleetAction:
    """Store the request with what it shows. Calls the cluster; raises what keeps it from being requested."""
    text = clean(comment)
    require_none_open(action)
    evidence = observe(action)
    at = clock.now()
    action.comment = text
    action.evidence, action.evidence_hash = evidence.to_json(), hash_evidence(action, evidence)
    action.state, action.created_at = ActionState.SUBMITTED, at
    action.deadline_at = action.next_check_at = at + SUBMITTED_FOR
    try:
        with transaction.atomic():
            action.save(force_insert=True)
            transitions.record(
                actor, action, audit_actions.REQUESTED, after=action.state, reason=text
            )
            notifications.notify_request(action)
    except IntegrityError:
        require_none_open(action)
        raise
    return action


def require_none_open(action: FleetAction) -> None:
    open_one = FleetAction.objects.filter(
        cluster=action.cluster,
        target_kind=action.target_kind,
        target=action.target,
        state__in=OPEN,
    ).first()
    if open_one is not None:
        raise Conflict(
            f"The {open_one} is already {open_one.state} (fleet action {open_one.pk}). Wait for its end, or "
            "withdraw or cancel it.",
            code="action_open",
        )


def clean(comment: str, *, field: str = "comment") -> str:
    text = comment.strip()
    if len(text) > _LONGEST_COMMENT:
        raise Invalid(
            f"Use at most {_LONGEST_COMMENT} characters.",
            fields={field: f"at most {_LONGEST_COMMENT} characters"},
        )
    return text
