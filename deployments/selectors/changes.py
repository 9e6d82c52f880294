"""Reading change requests: the inbox of approvers, and what one request changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from deployments.domain.states import ChangeState
from deployments.models import ChangeRequest, Revision
from portal.accounts import policy
from portal.accounts.models import Membership, Role, User
from portal.accounts.policy import Action, Actor
from portal.core.errors import Forbidden, NotFound

OPEN_STATES = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)
_RELATED = (
    "deployment__team",
    "deployment__cluster",
    "deployment__stable_revision__version__model__team",
    "requester",
    "revision__version__model__team",
    "revision__deployment",
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


def may_decide(actor: Actor, change: ChangeRequest) -> tuple[bool, str]:
    """Whether the actor may approve or reject, and the rule in words when not."""
    if change.state != ChangeState.SUBMITTED:
        return False, f"The request is {change.state}."
    return _may(actor, Action.APPROVE, change)


def may_withdraw(actor: Actor, change: ChangeRequest) -> bool:
    is_open = change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED)
    return is_open and policy.is_allowed(actor, Action.REQUEST_CHANGE, change)


def diff_of(change: ChangeRequest) -> list[DiffLine]:
    """The requested revision beside the one that serves now; empty when none is requested."""
    if change.revision is None:
        return []
    stable = change.deployment.stable_revision
    if stable is not None and stable.pk == change.revision_id:
        stable = None
    before, after = _flat(stable), _flat(change.revision)
    return [
        DiffLine(field=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in sorted({*before, *after}, key=_position)
    ]


def _with_related(rows: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    return rows.select_related(*_RELATED).prefetch_related("approvals__user")


def _waiting_for(actor: Actor) -> QuerySet[ChangeRequest]:
    rows = ChangeRequest.objects.filter(state=ChangeState.SUBMITTED)
    if not isinstance(actor, User):
        return rows
    rows = rows.exclude(requester=actor)
    if actor.is_platform_admin:
        return rows
    led = Membership.objects.filter(user=actor, role=Role.LEAD).values("team")
    return rows.filter(deployment__team__in=led)


def _may(actor: Actor, action: Action, change: ChangeRequest) -> tuple[bool, str]:
    try:
        policy.require(actor, action, change, requester_id=change.requester_id)
    except (Forbidden, NotFound) as refusal:
        return False, refusal.message
    return True, ""


_ORDER = ("version", "accuracy", "dataset_version", "sha256", "engine", "instance_type")


def _position(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def _flat(revision: Revision | None) -> dict[str, str]:
    if revision is None:
        return {}
    version = revision.version
    flat: dict[str, Any] = {"version": version.label, "sha256": version.sha256[:12]}
    for name in ("accuracy", "dataset_version"):
        if name in version.metadata:
            flat[name] = version.metadata[name]
    spec = {k: v for k, v in revision.spec.items() if k != "schema"}
    spec["env"] = ", ".join(f"{k}={v}" for k, v in sorted(spec.get("env", {}).items()))
    return {name: str(value) for name, value in {**flat, **spec}.items()}
