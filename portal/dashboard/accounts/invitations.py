"""Invite people to a team, and revoke invitations. For the team's leads and platform admins."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from portal.accounts import policy, teams
from portal.accounts.local import invitations
from portal.accounts.local.invitations import NewInvitation
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import DomainError, Forbidden, NotFound
from portal.dashboard import admin, people
from portal.dashboard.accounts import shown_links
from portal.dashboard.accounts.invite_forms import InviteForm, InviteToTeamForm
from portal.dashboard.accounts.shown_links import ShownLink
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@never_cache
@require_POST
@people_only
def invite_to_team(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    form = InviteForm(request.POST)
    made = _invite(user, slug, form) if form.is_valid() else None
    return admin.team_page(
        request, user, slug, invite=InviteForm() if made else form, invited=_shown(request, made)
    )


@never_cache
@require_POST
@people_only
def invite(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user, Action.MANAGE_TEAM)
    form = InviteToTeamForm(user, request.POST)
    made = _invite(user, form.cleaned_data["team"], form) if form.is_valid() else None
    return people.render_list(
        request,
        user,
        invite=InviteToTeamForm(user) if made else form,
        invited=_shown(request, made),
        status=HTTPStatus.OK if made else HTTPStatus.UNPROCESSABLE_ENTITY,
    )


@require_POST
@people_only
def revoke(request: HttpRequest, user: User, invitation_id: int) -> HttpResponse:
    row = invitations.revoke(actor=user, invitation_id=invitation_id)
    messages.success(request, f"Revoked. The link of {row.name} no longer works.")
    if request.POST.get("from") == "people":
        return redirect("admin-people")
    return redirect("admin-team", slug=row.team.slug)


def _invite(user: User, slug: str, form: InviteForm) -> NewInvitation | None:
    """Create the invitation of a form. None if it is refused; the form then says why."""
    data = form.cleaned_data
    try:
        return invitations.invite(
            actor=user,
            team=teams.get_visible(actor=user, slug=slug),
            name=data["name"],
            email=data["email"],
            role=data["role"],
        )
    except (NotFound, Forbidden):
        raise
    except DomainError as error:
        add_to(form, error)
        return None


def _shown(request: HttpRequest, made: NewInvitation | None) -> ShownLink | None:
    if made is None:
        return None
    return shown_links.build_shown_link(
        request,
        made.row,
        path=made.path,
        title=f"Invitation for {made.row.name}",
        email=made.row.email,
    )
