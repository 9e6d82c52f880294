"""Reading change requests: the inbox of approvers, and what one request changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, QuerySet

from deployments.approvals.domain.rules import Capacity
from deployments.approvals.selectors import approvals
from deployments.approvals.selectors.approvals import Decidable
from deployments.changes.selectors.evidence import COMPARED
from deployments.models import ChangeRequest, Revision
from deployments.serving.selectors import revisions
from deployments.spec.domain import field_values
from deployments.states import ChangeState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action, Actor
from portal.core.errors import Forbidden, NotFound

OPEN_STATES = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)
_RELATED = (
    "deployment__team",
    "deployment__cluster",
    "requester",
    "emergency_review__opened_by",
    "emergency_review__closed_by",
)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One field of the serving spec or version: what serves now, and what is asked for."""

    field: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


def list_visible_to(
    actor: Actor, *, team_slug: str | None = None, state: str = ""
) -> QuerySet[ChangeRequest]:
    """Newest first."""
    rows = ChangeRequest.objects.filter(deployment__team__in=policy.visible_teams(actor))
    if team_slug:
        rows = rows.filter(deployment__team__slug=team_slug)
    if state:
        rows = rows.filter(state=state)
    return _with_related(rows)


def inbox(actor: Actor) -> QuerySet[ChangeRequest]:
    """Requests that wait for a decision which this person may take, oldest first."""
    return _with_related(_waiting_for(actor)).order_by("id")


def count_waiting_for(actor: Actor) -> int:
    return _waiting_for(actor).count()


def get_visible(*, actor: Actor, change_id: int) -> ChangeRequest:
    found = list_visible_to(actor).filter(pk=change_id).first()
    if found is None:
        raise NotFound(f"There is no change request {change_id}, or you are not in its team.")
    return found


def may_decide(actor: Actor, change: Decidable) -> tuple[bool, str]:
    """Whether the actor may approve or reject, and the rule in words when not."""
    if change.state != ChangeState.SUBMITTED:
        return False, f"The request is {change.state}."
    if not isinstance(actor, User):
        return True, ""
    by = approvals.Desk(actor).capacity(change)
    if by is not None and by.capacity == Capacity.NAMED:
        is_own = actor.pk == change.requester_id
        return not is_own, "You requested this change." if is_own else ""
    return _may(actor, Action.APPROVE, change)


def may_approve(actor: User, change: Decidable) -> tuple[bool, str]:
    """Whether one more approval by the actor would count, and why not in words."""
    may, why_not = may_decide(actor, change)
    if not may:
        return False, why_not
    if approvals.Desk(actor).is_wanted(change):
        return True, ""
    has_approved = any(one.user_id == actor.pk for one in approvals.live_approvals(change))
    words = (
        "You have already approved this" if has_approved else "Your approval does not count here"
    )
    return False, f"{words}: {approvals.standing_of(change).words}."


def may_break_glass(actor: User, change: ChangeRequest) -> bool:
    is_open = change.state == ChangeState.SUBMITTED
    requester_id = change.requester_id
    return is_open and policy.is_allowed(
        actor, Action.EMERGENCY_OVERRIDE, change, requester_id=requester_id
    )


def may_withdraw(actor: Actor, change: ChangeRequest) -> bool:
    is_open = change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED)
    return is_open and policy.is_allowed(actor, Action.REQUEST_CHANGE, change)


def diff_of(change: ChangeRequest) -> list[DiffLine]:
    """The requested revision beside the one that serves now; empty when none is requested."""
    if change.revision is None:
        return []
    stable = change.deployment.stable_revision
    if stable is not None and stable.pk == change.revision_id and not change.scale:
        stable = None
    before, after = _flat(stable, {}), _flat(change.revision, change.scale)
    return [
        DiffLine(field=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in sorted({*before, *after}, key=_position)
    ]


def _with_related(rows: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    return rows.select_related(*_RELATED).prefetch_related(
        Prefetch("deployment__stable_revision", revisions.complete()),
        Prefetch("revision", revisions.complete()),
        "approvals__user",
        "approvals__stands_for",
    )


def _waiting_for(actor: Actor) -> QuerySet[ChangeRequest]:
    rows = ChangeRequest.objects.filter(state=ChangeState.SUBMITTED)
    if not isinstance(actor, User):
        return rows
    # Few wait at any time; which of them wait for this person, their rules tell.
    mine = rows.filter(deployment__team__in=policy.visible_teams(actor)).exclude(requester=actor)
    found = list(mine.select_related("deployment__team").prefetch_related("approvals"))
    desk = approvals.Desk(actor) if found else None
    return rows.filter(pk__in=[one.pk for one in found if desk and desk.is_wanted(one)])


def _may(actor: Actor, action: Action, change: Decidable) -> tuple[bool, str]:
    try:
        policy.require(actor, action, change, requester_id=change.requester_id)
    except (Forbidden, NotFound) as refusal:
        return False, refusal.message
    return True, ""


_ORDER = ("version", "accuracy", "dataset_version", "weights", "sha256", "engine", "instance_type")


def _position(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def _flat(revision: Revision | None, scale: Mapping[str, Any]) -> dict[str, str]:
    if revision is None:
        return {}
    version = revision.version
    flat: dict[str, Any] = {"version": version.label, "sha256": version.sha256[:12]}
    if version.source_uri:
        flat = {"version": version.label, "weights": version.source_uri}
    for name in COMPARED:
        if name in version.metadata:
            flat[name] = version.metadata[name]
    kept = scale or revision.deployment.scale
    is_scaled = kept.get("revision") == revision.number
    replicas = {k: v for k, v in kept.items() if k != "revision"} if is_scaled else {}
    spec = {k: v for k, v in {**revision.spec, **replicas}.items() if k != "schema"}
    return field_values.flatten({**flat, **spec})
