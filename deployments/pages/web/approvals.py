"""The inbox of approvers, and one change request with everything a decision needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from deployments.domain import wording
from deployments.domain.states import CHANGE, ChangeState
from deployments.models import ChangeRequest, EmergencyReview
from deployments.selectors import approvals, changes, emergencies, pipelines, plans
from deployments.services import changes as change_services
from deployments.services import emergencies as emergency_services
from deployments.services import rechecks
from deployments.web import change_items, deploy_page, guard_lines
from deployments.web.fragments import respond
from deployments.web.manifest_views import manifests_of_text
from deployments.web.service_forms import DecisionForm
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Conflict
from portal.ui.access import people_only

_SHOWN = 20
_DONE = {
    "approve": "Your approval is given.",
    "reject": "Rejected.",
    "withdraw": "Withdrawn.",
    "emergency": "Approved in an emergency. Another lead or admin must review it.",
    "close_review": "The review is closed.",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    weight: int
    soak_words: str
    min_requests: int


@dataclass(frozen=True, slots=True)
class ReviewRow:
    item: change_items.ChangeItem
    review: EmergencyReview
    is_late: bool


@require_GET
@people_only
def inbox(request: HttpRequest, user: User) -> HttpResponse:
    waiting = list(changes.inbox(user))
    seen = changes.list_visible_to(user)
    still_open = seen.filter(state__in=changes.OPEN_STATES)
    others = still_open.exclude(pk__in=[change.pk for change in waiting])
    closed = seen.exclude(state__in=[*changes.OPEN_STATES, ChangeState.DRAFT])
    context = {
        "waiting": change_items.items_of(waiting),
        "pipelines": pipelines.waiting_for(user),
        "reviews": [
            ReviewRow(change_items.item_of(review.change), review, review.due_at < clock.now())
            for review in emergencies.list_visible_to(user, is_open=True)[:_SHOWN]
        ],
        "open": change_items.items_of(others[:_SHOWN]),
        "decided": change_items.items_of(closed[:_SHOWN]),
    }
    parts = {"inbox": "delivery/_inbox.html"}
    return respond(request, "delivery/approvals.html", context, parts=parts)


@require_http_methods(["GET", "POST"])
@people_only
def change(request: HttpRequest, user: User, change_id: int) -> HttpResponse:
    found = changes.get_visible(actor=user, change_id=change_id)
    form = DecisionForm(request.POST or None)
    if request.method == "POST":
        if form.run(lambda: _decide(user, found, form)) is not None:
            messages.success(request, _DONE[form.cleaned_data["decision"]])
            return redirect("change", change_id=change_id)
        found = changes.get_visible(actor=user, change_id=change_id)
    is_final = not CHANGE[ChangeState(found.state)]
    # The cluster is asked, so the page itself does not wait for it.
    is_asked = "checks" in request.GET and request.method == "GET"
    recheck = rechecks.look(actor=user, change_id=change_id) if is_asked else None
    return respond(
        request,
        "delivery/change.html",
        _context_of(user, found, form) | {"is_final": is_final, "recheck": recheck},
        parts={
            "change-head": "delivery/_change_head.html",
            "checks-now": "delivery/_checks_now.html",
        },
        is_final=is_final,
        status=form.status if form.is_bound else 200,
    )


def _decide(user: User, found: ChangeRequest, form: DecisionForm) -> ChangeRequest:
    data = form.cleaned_data
    if data["decision"] == "emergency":
        return emergency_services.approve(
            actor=user,
            change_id=found.pk,
            evidence_hash=data["evidence_hash"],
            reason=data["comment"],
        )
    if data["decision"] == "close_review":
        return _close_review(user, found, data["comment"])
    if data["decision"] == "approve":
        return change_services.approve(
            actor=user,
            change_id=found.pk,
            evidence_hash=data["evidence_hash"],
            comment=data["comment"],
        )
    if data["decision"] == "reject":
        return change_services.reject(actor=user, change_id=found.pk, comment=data["comment"])
    return change_services.withdraw(actor=user, change_id=found.pk, reason=data["comment"])


def _close_review(user: User, found: ChangeRequest, finding: str) -> ChangeRequest:
    review = change_items.review_of(found)
    if review is None:
        raise Conflict("This change left no review.", code="no_review")
    emergency_services.close_review(actor=user, review_id=review.pk, finding=finding)
    return found


def _context_of(user: User, found: ChangeRequest, form: DecisionForm) -> dict[str, Any]:
    may_reject, _ = changes.may_decide(user, found)
    may_approve, why_not = changes.may_approve(user, found)
    review = change_items.review_of(found)
    diff = change_items.lines_of(found)
    revision = found.revision
    return {
        "item": change_items.item_of(found),
        "change": found,
        "form": form,
        "steps": [
            StepRow(
                weight=step["weight"],
                soak_words=wording.duration_words(step["soak_seconds"]),
                min_requests=step["min_requests"],
            )
            for step in found.steps
        ],
        "guards": guard_lines.lines_of(found.plan),
        "diff": diff,
        "has_before": any(line.before for line in diff),
        "manifests": manifests_of_text(plans.yaml_of_change(found)),
        "version": revision.version if revision else None,
        "metadata": _metadata_of(found),
        "cost": deploy_page.stored_cost_card(found.cost),
        "standing": approvals.standing_of(found),
        "still_needed": approvals.people_still_needed(found),
        "may_approve": may_approve,
        "may_reject": may_reject,
        "may_break_glass": changes.may_break_glass(user, found),
        "review": review,
        "may_close_review": review is not None and emergencies.may_close(user, review)[0],
        "why_not": why_not if found.state == ChangeState.SUBMITTED else "",
        "may_withdraw": changes.may_withdraw(user, found),
    }


def _metadata_of(found: ChangeRequest) -> list[tuple[str, str]]:
    if found.revision is None:
        return []
    stated = found.revision.version.metadata
    return [(change_items.field_words(name), str(value)) for name, value in stated.items() if value]
