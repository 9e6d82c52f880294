"""Delegates of a team's leads."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from portal.accounts import delegations, teams
from portal.accounts.models import User
from portal.core.errors import Conflict, Invalid
from portal.dashboard.admin import team_page
from portal.dashboard.admin_forms import DelegateForm
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@require_POST
@people_only
def name_delegate(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    form = DelegateForm(request.POST)
    if not form.is_valid():
        return team_page(request, user, slug, delegate=form)
    try:
        made = delegations.name_delegate(actor=user, team=team, **form.values())
    except (Conflict, Invalid) as error:
        add_to(form, error, renamed=DelegateForm.RENAMED)
        return team_page(request, user, slug, delegate=form)
    messages.success(request, f"{made.delegate.username} can now approve on your behalf.")
    return redirect("admin-team", slug=slug)


@require_POST
@people_only
def end_delegation(request: HttpRequest, user: User, slug: str, delegation_id: int) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    ended = delegations.end(actor=user, team=team, delegation_id=delegation_id)
    messages.success(request, f"Ended the delegation of {ended.delegate.username}.")
    return redirect("admin-team", slug=slug)
