"""Requesting a new EC2NodeClass, or other settings of one."""

from __future__ import annotations

from fleet.actions.domain.kinds import ActionKind, TargetKind
from fleet.actions.domain.node_class_settings import NodeClassSettings
from fleet.actions.domain.pool_settings import problem_with_name
from fleet.actions.services import requests
from fleet.models import FleetAction
from portal.accounts import fleet_policy
from portal.accounts.models import User
from portal.core.errors import Invalid


def request_class_change(
    *, actor: User, cluster_id: int, name: str, settings: NodeClassSettings, comment: str = ""
) -> FleetAction:
    """Request a change of a node class. Empty settings stay unchanged."""
    action = _of_class(actor, ActionKind.CHANGE_NODE_CLASS, cluster_id, name, settings)
    return requests.submit(actor, action, comment)


def request_class_creation(
    *, actor: User, cluster_id: int, name: str, settings: NodeClassSettings, comment: str = ""
) -> FleetAction:
    action = _of_class(actor, ActionKind.CREATE_NODE_CLASS, cluster_id, name, settings)
    return requests.submit(actor, action, comment)


def _of_class(
    actor: User, kind: ActionKind, cluster_id: int, name: str, settings: NodeClassSettings
) -> FleetAction:
    fleet_policy.require_requester(actor)
    cluster = requests.get_cluster(cluster_id)
    problems = settings.problems(is_new=kind is ActionKind.CREATE_NODE_CLASS)
    if problem := problem_with_name(name):
        problems["name"] = problem
    if problems:
        raise Invalid("The settings of the EC2NodeClass are not valid.", fields=problems)
    return FleetAction(
        cluster=cluster,
        kind=kind,
        target_kind=TargetKind.NODE_CLASS,
        target=name,
        parameters=settings.to_json(),
        requester=actor,
    )
