"""Service accounts on the page of their team: create, rotate, revoke. A new token is shown once."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from portal.accounts import service_accounts, teams
from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.dashboard.admin import team_page
from portal.dashboard.token_forms import RotationForm, ServiceAccountForm
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@require_POST
@never_cache
@people_only
def create(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    form = ServiceAccountForm(request.POST)
    if not form.is_valid():
        return team_page(request, user, slug, service=form)
    try:
        made = service_accounts.create(actor=user, team=team, **form.values())
    except DomainError as error:
        add_to(form, error)
        return team_page(request, user, slug, service=form)
    return team_page(request, user, slug, made=made)


@require_POST
@never_cache
@people_only
def rotate(request: HttpRequest, user: User, slug: str, account: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    form = RotationForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose how long the old token still works.")
        return redirect("admin-team", slug=slug)
    made = service_accounts.rotate(actor=user, team=team, name=account, **form.values())
    return team_page(request, user, slug, made=made)


@require_POST
@people_only
def revoke(request: HttpRequest, user: User, slug: str, account: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    service_accounts.revoke(actor=user, team=team, name=account)
    messages.success(request, f"Revoked {account}. Requests with its tokens are now rejected.")
    return redirect("admin-team", slug=slug)
