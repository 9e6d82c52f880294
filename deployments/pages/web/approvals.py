"""The approvals inbox, and the page of a change request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from deployments.approvals.selectors import approvals
from deployments.approvals.web.forms import DecisionForm
from deployments.batch.selectors import jobs as batch_jobs
from deployments.batch.selectors import waiting as batch
from deployments.batch.web import items as batch_items
from deployments.batch.web.items import BatchItem
from deployments.changes.selectors import changes, emergency_reviews, shown_evidence
from deployments.changes.selectors import comments as comment_selectors
from deployments.changes.services import (
    comments,
    decisions,
    emergency_override,
    plan_figures,
    recheck,
)
from deployments.changes.web import field_diff, items, new_deployment_cards
from deployments.changes.web.items import ChangeItem
from deployments.environments.web import cards
from deployments.manifests.web.yaml_files import manifests_of_text
from deployments.models import BatchJob, ChangeRequest, EmergencyReview
from deployments.plans.domain import descriptions
from deployments.plans.selectors import plans
from deployments.registry.domain.metadata import version_metadata
from deployments.spec.domain import field_values
from deployments.states import CHANGE, ChangeState
from fleet.actions.selectors import actions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import AlreadyDone, Conflict
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond

_MAX_ROWS = 20
# Names in the query of a poll how far the decision was that the page shows.
_SHOWN = "shown"
_DONE = {
    "approve": "Approved.",
    "reject": "Rejected.",
    "withdraw": "Withdrawn.",
    "emergency": "Approved with an emergency override. Another lead or admin must review it.",
    "close_review": "Review closed.",
    "comment": "Comment added.",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    weight: int
    soak: str
    min_requests: int


@dataclass(frozen=True, slots=True)
class ReviewRow:
    item: items.ChangeItem
    review: EmergencyReview
    is_late: bool


@require_GET
@people_only
def inbox(request: HttpRequest, user: User) -> HttpResponse:
    waiting = changes.waiting_for(user)
    jobs = batch.waiting_for(user)
    rows = [*((BatchJob, job_id) for job_id in jobs), *((ChangeRequest, pk) for pk in waiting)]
    page = Paginator(rows, _MAX_ROWS).get_page(request.GET.get("page"))
    other_jobs = batch.list_submitted(user).exclude(pk__in=jobs)
    visible = changes.list_visible_to(user)
    others = visible.filter(state__in=changes.OPEN_STATES).exclude(pk__in=waiting)
    closed = visible.exclude(state__in=[*changes.OPEN_STATES, ChangeState.DRAFT])
    here = [pk for model, pk in page.object_list if model is ChangeRequest]
    shown, done = _first_ids(others), _first_ids(closed)
    # With all that belongs to a request only for those that are shown.
    item_of = {row.pk: items.item_of(row) for row in changes.list_by_ids([*here, *shown, *done])}
    shown_jobs = _first_ids(other_jobs)
    done_jobs = _first_ids(batch.list_decided(user))
    here_jobs = [pk for model, pk in page.object_list if model is BatchJob]
    job_of = _jobs_of(user, [*here_jobs, *shown_jobs, *done_jobs])
    context = {
        "page": page,
        "waiting": _by_age((item_of[pk] for pk in here), (job_of[pk] for pk in here_jobs)),
        "fleet_waiting": list(actions.list_waiting_for(user)[:_MAX_ROWS]),
        "reviews": [
            ReviewRow(items.item_of(review.change), review, review.due_at < clock.now())
            for review in emergency_reviews.list_visible_to(user, is_open=True)[:_MAX_ROWS]
        ],
        "open": _newest((item_of[pk] for pk in shown), (job_of[pk] for pk in shown_jobs)),
        "open_count": _count(others, shown) + _count(other_jobs, shown_jobs),
        "decided": _newest((item_of[pk] for pk in done), (job_of[pk] for pk in done_jobs)),
    }
    parts = {"inbox": "pages/_inbox.html"}
    return respond(request, "pages/approvals.html", context, parts=parts)


def _first_ids(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("pk", flat=True)[:_MAX_ROWS])


def _jobs_of(user: User, ids: Sequence[int]) -> dict[int, BatchItem]:
    rows = batch_jobs.list_visible_to(user).filter(pk__in=ids) if ids else []
    return {job.pk: batch_items.item_of(job) for job in rows}


def _count(rows: QuerySet[Any], shown: Sized) -> int:
    return len(shown) if len(shown) < _MAX_ROWS else rows.count()


def _by_age(*rows: Iterable[ChangeItem | BatchItem]) -> list[ChangeItem | BatchItem]:
    """Sort the items, the oldest first."""
    return sorted(chain.from_iterable(rows), key=lambda row: row.requested_at)


def _newest(*rows: Iterable[ChangeItem | BatchItem]) -> list[ChangeItem | BatchItem]:
    return _by_age(*rows)[::-1][:_MAX_ROWS]


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def change(request: HttpRequest, user: User, change_id: int) -> HttpResponse:
    change = changes.get_visible(actor=user, change_id=change_id)
    form = DecisionForm(request.POST or None)
    if request.method == "POST":
        if form.run(lambda: _decide(user, change, form)) is not None:
            messages.success(request, _DONE[form.cleaned_data["decision"]])
            return redirect("change", change_id=change_id)
        if isinstance(form.refusal, AlreadyDone):
            messages.info(request, form.refusal.message)
            if not _comment_to_keep(form):
                return redirect("change", change_id=change_id)
        change = changes.get_visible(actor=user, change_id=change_id)
    is_final = not CHANGE[ChangeState(change.state)]
    reading = _name_reading(change)
    # It calls the cluster, so the page loads it separately.
    is_requested = "checks" in request.GET and request.method == "GET"
    repeated = recheck.repeat(actor=user, change_id=change_id) if is_requested else None
    return respond(
        request,
        "pages/change.html",
        {
            **_context_of(user, change, form),
            "is_final": is_final,
            "recheck": repeated,
            "reading": reading,
            "kept_comment": _comment_to_keep(form),
        },
        parts={
            "change-head": "pages/_change_head.html"
            if request.GET.get(_SHOWN) == reading
            else "pages/_change_poll.html",
            "checks-now": "pages/_checks_now.html",
        },
        is_final=is_final,
        status=form.status if form.is_bound else 200,
    )


def _name_reading(change: ChangeRequest) -> str:
    """Return a name for how far the decision is. A poll that names another one gets the decision as well."""
    return f"{change.state}-{change.approvals.count()}"


def _comment_to_keep(form: DecisionForm) -> str:
    """Return the comment that was typed for a decision which somebody else has made meanwhile. Empty if none."""
    is_late = form.is_bound and isinstance(form.refusal, AlreadyDone)
    return str(form.cleaned_data.get("comment", "")) if is_late else ""


def _decide(user: User, change: ChangeRequest, form: DecisionForm) -> ChangeRequest:
    comment, shown = form.cleaned_data["comment"], form.cleaned_data["evidence_hash"]
    match form.cleaned_data["decision"]:
        case "emergency":
            return emergency_override.approve(
                actor=user, change_id=change.pk, evidence_hash=shown, reason=comment
            )
        case "comment":
            comments.add(actor=user, change_id=change.pk, text=comment)
            return change
        case "close_review":
            return _close_review(user, change, comment)
        case "approve":
            return decisions.approve(
                actor=user, change_id=change.pk, evidence_hash=shown, comment=comment
            )
        case "reject":
            return decisions.reject(actor=user, change_id=change.pk, comment=comment)
        case _:
            return decisions.withdraw(actor=user, change_id=change.pk, reason=comment)


def _close_review(user: User, change: ChangeRequest, finding: str) -> ChangeRequest:
    review = items.review_of(change)
    if review is None:
        raise Conflict("This change has no emergency review.", code="no_review")
    emergency_override.close_review(actor=user, review_id=review.pk, finding=finding)
    return change


def _context_of(user: User, change: ChangeRequest, form: DecisionForm) -> dict[str, Any]:
    may_reject, _ = changes.may_decide(user, change)
    may_approve, why_not = changes.may_approve(user, change)
    review = items.review_of(change)
    version = change.revision.version if change.revision else None
    return {
        **_evidence_context(change),
        "item": items.item_of(change),
        "change": change,
        "comments": comment_selectors.list_comments(change),
        "asked": comment_selectors.list_asked(change),
        "form": form,
        **_plan_context(change),
        "version": version,
        "has_passed": version is not None and all(c["ok"] is True for c in version.checks),
        "still_needed": approvals.people_still_needed(change),
        "may_approve": may_approve,
        "may_reject": may_reject,
        "may_override": changes.may_override(user, change),
        "why_blocked": emergency_reviews.why_blocked(change.team),
        "review": review,
        "may_close_review": review is not None and emergency_reviews.may_close(user, review)[0],
        "why_not": why_not if change.state == ChangeState.SUBMITTED else "",
        "may_withdraw": changes.may_withdraw(user, change),
        "may_resubmit": changes.may_resubmit(user, change),
        "replacement": change.replacements.first() if change.finished_at else None,
    }


def _plan_context(change: ChangeRequest) -> dict[str, Any]:
    """Return the steps, and what the watch after them costs."""
    if change.deployment is None or not change.steps:
        return {"steps": []}
    plan = plans.plan_of(change)
    seconds = plan.warmup_seconds
    return {
        "steps": [
            StepRow(
                weight=step.weight,
                soak=descriptions.format_duration(step.soak_seconds),
                min_requests=step.min_requests,
            )
            for step in plan.steps
        ],
        "warm_up": descriptions.format_duration(seconds) if seconds else "none",
        "watch": descriptions.format_duration(plan.watched_seconds) if plan.watched_seconds else "",
        "watch_amount": plan_figures.watch_cost(change.deployment, plan),
    }


def _evidence_context(change: ChangeRequest) -> dict[str, Any]:
    """Return the context of a request's evidence. Once decided: as it was shown at the decision, and what
    changed since.
    """
    kept = shown_evidence.read_decided(change)
    shown = kept or shown_evidence.collect_evidence(change)
    metadata = version_metadata.flatten(shown.metadata).items()
    return {
        "shown": shown,
        "is_kept": kept is not None,
        "decided_at": kept.at if kept else None,
        "checked_at": shown.checked_at,
        "today_differs": shown_evidence.differences(change, kept) if kept else [],
        "approvals": items.approvals_of(change, shown),
        "card": cards.card_of(shown.promotion),
        "guards": shown.guards,
        "diff": field_diff.from_lines(shown.diff),
        "manifests": manifests_of_text(shown.manifests),
        "metadata": [
            (field_values.describe_field(name), field_values.format_value(value))
            for name, value in metadata
            if value not in (None, "")
        ],
        "cost": new_deployment_cards.stored_cost_card(shown.cost),
        "approval_status": shown.approval_status,
    }
