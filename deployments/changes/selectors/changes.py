"""Read change requests: the inbox of approvers, and who may do what with one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Final

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from deployments.approvals.domain.approver_roles import ApproverRole
from deployments.approvals.selectors import approvals
from deployments.changes.selectors import subjects
from deployments.models import Approval, ChangeRequest, Deployment, Pipeline
from deployments.serving.selectors import revisions
from deployments.states import ChangeKind, ChangeState
from portal.accounts import policy
from portal.accounts.approvers import ApproverRights
from portal.accounts.models import User
from portal.accounts.policy import Action, Actor
from portal.core.errors import Forbidden, NotFound
from portal.core.single_row import find_one

OPEN_STATES: Final = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)
_REPLACEABLE: Final = (ChangeState.SUBMITTED, ChangeState.REJECTED, ChangeState.EXPIRED)
_RELATED: Final = (
    "team",
    "deployment__team",
    "deployment__cluster",
    "pipeline__team",
    "pipeline__cluster",
    "requester",
    "emergency_review__opened_by",
    "emergency_review__closed_by",
)
_WITH_APPROVALS: Final = Prefetch(
    "approvals", Approval.objects.select_related("user", "stands_for")
)
# A list has the name of each row's cluster, and nothing of what was found in it.
_NOT_LISTED: Final = tuple(
    f"{subject}__cluster__{column}"
    for subject in ("deployment", "pipeline")
    for column in ("capabilities", "serving", "device_taint_rules", "prometheus_ca_pem")
)
# As many as a badge counts.
_AT_ONCE: Final = 100


def list_visible_to(
    actor: Actor,
    *,
    team_slug: str | None = None,
    state: str = "",
    about: type[Deployment | Pipeline] | None = None,
) -> QuerySet[ChangeRequest]:
    """Return the requests that the actor may see, the newest first."""
    return _with_related(_visible_to(actor, team_slug=team_slug, state=state, about=about))


def ids_visible_to(
    actor: Actor, *, team_slug: str | None, state: str, about: type[Deployment | Pipeline]
) -> QuerySet[ChangeRequest]:
    """Return the requests that the actor may see with only their ids, the newest first. `listed` reads those of a
    page.
    """
    return _visible_to(actor, team_slug=team_slug, state=state, about=about).only("pk")


def read_listed(page: Iterable[ChangeRequest]) -> list[ChangeRequest]:
    """Read all of `ids_visible_to` but what was shown at the decision, which is most of a row. Newest first."""
    return _read([row.pk for row in page], "decided", order="-id")


def _read(ids: Collection[int], *left_out: str, order: str) -> list[ChangeRequest]:
    """Read the requests with all that a list shows, and without the columns that are `left_out`."""
    requests = ChangeRequest.objects.filter(pk__in=ids).select_related(*_RELATED)
    rows = list(requests.defer(*left_out, *_NOT_LISTED).order_by(order))
    revisions.load(
        [
            *((change, ("revision",)) for change in rows),
            *((row.deployment, ("stable_revision",)) for row in rows if row.deployment),
        ]
    )
    prefetch_related_objects(rows, _WITH_APPROVALS)
    subjects.preload(rows)
    return rows


def _visible_to(
    actor: Actor,
    *,
    team_slug: str | None = None,
    state: str = "",
    about: type[Deployment | Pipeline] | None = None,
) -> QuerySet[ChangeRequest]:
    rows = ChangeRequest.objects.filter(team__in=policy.visible_teams(actor))
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    if state:
        rows = rows.filter(state=state)
    if about is not None:
        rows = rows.filter(pipeline__isnull=about is Deployment)
    return rows


def open_change_of(actor: Actor, deployment: Deployment) -> ChangeRequest | None:
    rows = list_visible_to(actor).filter(deployment=deployment, state__in=OPEN_STATES)
    return find_one(rows)


def waiting_for(
    actor: User, *, most: int | None = None, rights: ApproverRights | None = None
) -> list[int]:
    """Return the ids of requests that wait for a decision of this person, the oldest first: all, or the first of
    them.

    Their rules say which wait for this person, so that they are read one by one.
    """
    return list(islice(_waiting_for(actor, rights), most))


def _waiting_for(actor: User, rights: ApproverRights | None) -> Iterator[int]:
    context = approvals.ApproverContext(actor, rights)
    submitted = _submitted_by_others(actor)
    rows = list(submitted[:_AT_ONCE])
    while rows:
        given = _live_approvals(rows)
        for change in rows:
            if context.is_waiting_for_actor(change, given.get(change.pk, ())):
                yield change.pk
        if len(rows) < _AT_ONCE:
            return
        rows = list(submitted.filter(pk__gt=rows[-1].pk)[:_AT_ONCE])


def _submitted_by_others(actor: User) -> QuerySet[ChangeRequest]:
    """Return submitted requests of others without evidence, the oldest first: every page counts those that wait for
    its reader.
    """
    visible = _visible_to(actor, state=ChangeState.SUBMITTED)
    rows = visible.exclude(requester=actor).select_related("requester").order_by("pk")
    return rows.only("team", "state", "required", "requester__service_team")


def _live_approvals(changes: Collection[ChangeRequest]) -> Mapping[int, list[Approval]]:
    by_change: dict[int, list[Approval]] = defaultdict(list)
    for approval in approvals.live_of(Approval.objects.filter(change__in=changes)):
        by_change[approval.change_id].append(approval)
    return by_change


def list_by_ids(ids: Collection[int]) -> list[ChangeRequest]:
    """Return requests with all that a list shows, the oldest first. The caller has checked that they are visible."""
    return _read(ids, order="id")


def ages_of(ids: Collection[int]) -> Iterable[tuple[int, int | None, str, datetime]]:
    """Return id, pipeline, team and creation of requests, the oldest first. The caller has checked that they are
    visible.
    """
    rows = ChangeRequest.objects.filter(pk__in=ids).order_by("id")
    return rows.values_list("pk", "pipeline_id", "team__slug", "created_at")


def count_waiting_for(
    actor: User, *, most: int | None = None, rights: ApproverRights | None = None
) -> int:
    """Count the requests that wait for a decision of this person, up to `most`."""
    return len(waiting_for(actor, most=most, rights=rights))


def get_visible(
    *, actor: Actor, change_id: int, about: type[Deployment | Pipeline] | None = None
) -> ChangeRequest:
    change = find_one(list_visible_to(actor, about=about).filter(pk=change_id))
    if change is None:
        raise NotFound(f"There is no change request {change_id}, or you are not in its team.")
    return change


def open_request_of(subject: Deployment | Pipeline) -> ChangeRequest | None:
    return find_one(_with_related(subject.changes.filter(state__in=OPEN_STATES)))


def may_decide(actor: Actor, change: ChangeRequest) -> tuple[bool, str]:
    """Return whether the actor may approve or reject, and the reason if not."""
    if change.state != ChangeState.SUBMITTED:
        return False, f"The request is {change.state}."
    if not isinstance(actor, User):
        return True, ""
    approver = approvals.ApproverContext(actor).approver_for(change)
    if approver is not None and approver.role == ApproverRole.NAMED:
        try:
            policy.require_another(actor, Action.APPROVE, change.team, change.requester_id)
        except Forbidden as refusal:
            return False, refusal.message
        return True, ""
    try:
        policy.require(actor, Action.APPROVE, change, requester_id=change.requester_id)
    except (Forbidden, NotFound) as refusal:
        return False, refusal.message
    return True, ""


def may_approve(actor: User, change: ChangeRequest) -> tuple[bool, str]:
    """Return whether one more approval by the actor would count, and the reason if not."""
    may, why_not = may_decide(actor, change)
    if not may:
        return False, why_not
    if approvals.ApproverContext(actor).is_waiting_for_actor(change):
        return True, ""
    has_approved = any(row.user_id == actor.pk for row in approvals.live_approvals(change))
    reason = (
        "You have already approved this" if has_approved else "Your approval does not count here"
    )
    return False, f"{reason}: {approvals.status_of(change).description}."


def may_override(actor: User, change: ChangeRequest) -> bool:
    """Whether the actor may approve the request with an emergency override."""
    is_open = change.state == ChangeState.SUBMITTED
    requester_id = change.requester_id
    return is_open and policy.is_allowed(
        actor, Action.EMERGENCY_OVERRIDE, change, requester_id=requester_id
    )


def may_withdraw(actor: Actor, change: ChangeRequest) -> bool:
    is_open = change.state in (ChangeState.SUBMITTED, ChangeState.APPROVED)
    return is_open and policy.is_allowed(actor, Action.REQUEST_CHANGE, change)


def may_resubmit(actor: User, change: ChangeRequest) -> bool:
    """Whether the actor may send a new request in the place of this one, which nothing replaced yet."""
    is_theirs = change.requester_id == actor.pk and change.kind == ChangeKind.DEPLOY
    if not is_theirs or change.state not in _REPLACEABLE:
        return False
    may_request = policy.is_allowed(actor, Action.REQUEST_CHANGE, change)
    return may_request and not change.replacements.exists()


def _with_related(rows: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    complete = revisions.complete()
    return rows.select_related(*_RELATED).prefetch_related(
        Prefetch("deployment__stable_revision", complete),
        Prefetch("revision", complete),
        _WITH_APPROVALS,
    )
