"""Fleet actions as people read them. Everyone may see them, as everyone sees nodes; what a request says of
other teams' deployments is counted, not named.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db.models import Count, Min, QuerySet

from fleet.actions.domain.evidence import AffectedDeployment, Evidence, HeldBudget
from fleet.actions.domain.progress import BlockedPod, Progress
from fleet.actions.domain.states import OPEN, WAITING, ActionState
from fleet.models import FleetAction
from portal.accounts import fleet_policy, policy
from portal.accounts.models import User
from portal.accounts.policy import Actor
from portal.core import leases
from portal.core.errors import Forbidden, NotFound
from portal.core.leases import Backlog


def list_all() -> QuerySet[FleetAction]:
    """List the actions, newest first."""
    return FleetAction.objects.select_related("cluster", "node", "requester", "decided_by").defer(
        "cluster__capabilities", "cluster__serving"
    )


def list_matching(*, state: str | None, cluster_id: int | None) -> QuerySet[FleetAction]:
    rows = list_all()
    rows = rows.filter(state=state) if state else rows
    return rows.filter(cluster=cluster_id) if cluster_id else rows


def list_open() -> QuerySet[FleetAction]:
    return list_all().filter(state__in=OPEN)


def list_closed() -> QuerySet[FleetAction]:
    return list_all().exclude(state__in=OPEN)


def list_of_node(node_id: int) -> QuerySet[FleetAction]:
    return list_all().filter(node=node_id)


def get_action(action_id: int) -> FleetAction:
    action = list_all().filter(pk=action_id).first()
    if action is None:
        raise NotFound(f"There is no fleet action {action_id}.")
    return action


def evidence_for(actor: Actor, action: FleetAction) -> Evidence:
    """Return the evidence of a request, without the names of what belongs to teams that the actor may not see."""
    evidence = Evidence.from_json(action.evidence)
    if policy.sees_all(actor):
        return evidence
    slugs = frozenset(policy.visible_teams(actor).values_list("slug", flat=True))
    return replace(
        evidence,
        deployments=tuple(_hidden(row, slugs) for row in evidence.deployments),
        budgets=tuple(_hidden_budget(row, slugs) for row in evidence.budgets),
        bound={},
    )


def list_blocked_pods(actor: Actor, action: FleetAction) -> list[BlockedPod]:
    """Return the pods that block a drain, limited to the teams that the actor may see."""
    blocked = Progress.from_json(action.progress).blocked
    if policy.sees_all(actor):
        return list(blocked)
    slugs = frozenset(policy.visible_teams(actor).values_list("slug", flat=True))
    return [item for item in blocked if item.namespace in slugs]


def list_waiting_for(user: User) -> QuerySet[FleetAction]:
    """List the requests that this person may decide on."""
    if not user.is_platform_admin:
        return FleetAction.objects.none()
    return list_all().filter(state=ActionState.SUBMITTED).exclude(requester=user)


def count_waiting_for(user: User) -> int:
    return list_waiting_for(user).count() if user.is_platform_admin else 0


def backlog() -> Backlog:
    """Return the backlog of actions that a worker has to take."""
    return leases.backlog(FleetAction.objects.all())


def count_open() -> dict[str, int]:
    """Count the open actions by state, including states without any."""
    rows = FleetAction.objects.filter(state__in=OPEN).order_by().values_list("state")
    counts = dict(rows.annotate(Count("pk")))
    return {str(state): counts.get(state, 0) for state in OPEN}


def oldest_waiting_since() -> datetime | None:
    rows = FleetAction.objects.filter(state=ActionState.SUBMITTED)
    at: datetime | None = rows.aggregate(at=Min("created_at"))["at"]
    return at


def why_not_decide(actor: Actor, action: FleetAction) -> str:
    """Return why the actor may not approve or reject the action. Empty if they may."""
    try:
        fleet_policy.require_approver(actor, requester_id=action.requester_id)
    except Forbidden as error:
        return error.message
    return ""


def may_stop(actor: Actor, action: FleetAction) -> bool:
    """Withdraw it while it waits, cancel it while it runs: its requester and platform admins, by no token
    that is limited to one team.
    """
    if policy.only_team(actor) is not None:
        return False
    is_own = isinstance(actor, User) and actor.pk == action.requester_id
    return is_own or (not isinstance(actor, User) or actor.is_platform_admin)


def may_withdraw(actor: Actor, action: FleetAction) -> bool:
    return action.state in WAITING and may_stop(actor, action)


def may_cancel(actor: Actor, action: FleetAction) -> bool:
    return action.state == ActionState.APPLYING and may_stop(actor, action)


def _hidden(row: AffectedDeployment, slugs: frozenset[str]) -> AffectedDeployment:
    if row.team_slug in slugs:
        return row
    return replace(row, team_slug="", deployment="", namespace="")


def _hidden_budget(row: HeldBudget, slugs: frozenset[str]) -> HeldBudget:
    return row if row.namespace in slugs else replace(row, namespace="", name="")
