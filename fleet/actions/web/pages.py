"""The list of fleet actions and the page of one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from fleet.actions.domain import states
from fleet.actions.domain.kinds import DRAINED_KINDS, HOURS_KINDS, TargetKind
from fleet.actions.domain.progress import Progress
from fleet.actions.domain.states import ActionState
from fleet.actions.selectors import actions
from fleet.actions.services import decisions
from fleet.actions.web.forms import DecisionForm
from fleet.actions.web.rows import DeploymentRow, diff_lines
from fleet.models import FleetAction
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond

_PER_PAGE = 25
_DONE = {
    "approve": "Approved.",
    "reject": "Rejected.",
    "withdraw": "Withdrawn.",
    "cancel": "Canceling. Changes to the node are reverted.",
}


@require_GET
@people_only
def actions_page(request: HttpRequest, user: User) -> HttpResponse:
    page = Paginator(actions.list_closed(), _PER_PAGE).get_page(request.GET.get("page"))
    context = {"open": actions.list_open(), "page": page}
    return respond(
        request, "actions/list.html", context, parts={"fleet-actions": "actions/_list.html"}
    )


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def action_page(request: HttpRequest, user: User, action_id: int) -> HttpResponse:
    action = actions.get_action(action_id)
    form = DecisionForm(request.POST or None)
    if request.method == "POST":
        if form.run(lambda: _decide(user, action, form)) is not None:
            messages.success(request, _DONE[form.cleaned_data["decision"]])
            return redirect("fleet-action", action_id=action_id)
        action = actions.get_action(action_id)
    is_final = states.is_final(action.state)
    return respond(
        request,
        "actions/action.html",
        _context_of(user, action, form) | {"is_final": is_final},
        parts={"action-state": "actions/_state.html"},
        is_final=is_final,
        status=form.status if form.is_bound else 200,
    )


def _decide(user: User, action: FleetAction, form: DecisionForm) -> FleetAction:
    comment, shown = form.cleaned_data["comment"], form.cleaned_data["evidence_hash"]
    match form.cleaned_data["decision"]:
        case "approve":
            return decisions.approve(
                actor=user, action_id=action.pk, evidence_hash=shown, comment=comment
            )
        case "reject":
            return decisions.reject(actor=user, action_id=action.pk, comment=comment)
        case "cancel":
            return decisions.cancel(actor=user, action_id=action.pk, reason=comment)
        case _:
            return decisions.withdraw(actor=user, action_id=action.pk, reason=comment)


def _context_of(user: User, action: FleetAction, form: DecisionForm) -> dict[str, Any]:
    evidence = actions.evidence_for(user, action)
    is_submitted = action.state == ActionState.SUBMITTED
    why_not = actions.why_not_decide(user, action) if is_submitted else ""
    return {
        "action": action,
        "evidence": evidence,
        "yaml_diff": diff_lines(evidence.yaml_before, evidence.yaml_after),
        "deployments": [DeploymentRow.from_affected(row) for row in evidence.deployments],
        "is_limit": action.target_kind == TargetKind.NODE_POOL,
        "has_cost": action.target_kind != TargetKind.NODE_CLASS,
        "is_drained": action.kind in DRAINED_KINDS,
        "is_hours": action.kind in HOURS_KINDS,
        "form": form,
        "may_decide": is_submitted and not why_not,
        "why_not": why_not,
        "may_withdraw": actions.may_withdraw(user, action),
        "may_cancel": actions.may_cancel(user, action),
        "is_running": action.state in states.RUNNING,
        "blocked": actions.list_blocked_pods(user, action)
        if action.state != ActionState.DONE
        else [],
        "progress": Progress.from_json(action.progress),
    }
