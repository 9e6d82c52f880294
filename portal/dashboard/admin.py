"""Teams with their limits and members. For their leads and platform admins."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts import delegations, service_accounts, teams
from portal.accounts.local import invitations
from portal.accounts.models import Role, User
from portal.accounts.tokens import NewToken
from portal.core.errors import DomainError
from portal.dashboard import admin_overview
from portal.dashboard.accounts.invite_forms import InviteForm
from portal.dashboard.accounts.shown_links import ShownLink
from portal.dashboard.admin_forms import DelegateForm, LimitsForm, MemberForm, TeamForm
from portal.dashboard.token_forms import OVERLAP_CHOICES, ServiceAccountForm
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@require_http_methods(["GET", "POST"])
@people_only
def team_list(request: HttpRequest, user: User) -> HttpResponse:
    form = TeamForm(request.POST or None)
    status = HTTPStatus.OK
    if request.method == "POST" and form.is_valid():
        try:
            team = teams.create(actor=user, **form.values())
            return redirect("admin-team", slug=team.slug)
        except DomainError as error:
            add_to(form, error)
            status = error.status
    elif form.errors:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    overview = admin_overview.list_teams(actor=user)
    context = {"teams": overview, "form": form}
    return render(request, "dashboard/admin.html", context, status=status)


@require_GET
@people_only
def team_detail(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    return team_page(request, user, slug)


@require_POST
@people_only
def set_limits(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    form = LimitsForm(request.POST)
    if not form.is_valid():
        return team_page(request, user, slug, limits=form)
    team = teams.get_visible(actor=user, slug=slug)
    teams.set_limits(actor=user, team=team, **form.values())
    messages.success(request, f"Quota and budget of {slug} saved.")
    return redirect("admin-team", slug=slug)


@require_POST
@people_only
def set_member(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    form = MemberForm(request.POST)
    if not form.is_valid():
        return team_page(request, user, slug, member=form)
    team = teams.get_visible(actor=user, slug=slug)
    try:
        made = teams.set_member(actor=user, team=team, **form.values())
    except DomainError as error:
        add_to(form, error)
        return team_page(request, user, slug, member=form)
    messages.success(request, f"{form.cleaned_data['username']} is now {made.role} of {slug}.")
    return redirect("admin-team", slug=slug)


@require_POST
@people_only
def remove_member(request: HttpRequest, user: User, slug: str, username: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    teams.remove_member(actor=user, team=team, username=username)
    messages.success(request, f"Removed {username} from {slug}.")
    return redirect("admin-team", slug=slug)


def team_page(
    request: HttpRequest,
    user: User,
    slug: str,
    *,
    limits: LimitsForm | None = None,
    member: MemberForm | None = None,
    delegate: DelegateForm | None = None,
    invite: InviteForm | None = None,
    invited: ShownLink | None = None,
    service: ServiceAccountForm | None = None,
    made: NewToken | None = None,
) -> HttpResponse:
    """Render the page; a refused form keeps its input and errors."""
    overview = admin_overview.get_team_overview(actor=user, slug=slug)
    context = {
        "team": overview,
        "limits": limits or LimitsForm.for_team(overview.team),
        "member": member or MemberForm(),
        "delegations": delegations.list_open(actor=user, team=overview.team),
        "delegate": delegate or DelegateForm(),
        "invite": invite or InviteForm(),
        "invited": invited,
        "invitations": invitations.list_open(actor=user, team=overview.team),
        "service_accounts": service_accounts.list_service_accounts(actor=user, team=overview.team),
        "service": service or ServiceAccountForm(),
        "overlaps": OVERLAP_CHOICES,
        "made": made,
        "is_lead": any(
            membership.user_id == user.pk and membership.role == Role.LEAD
            for membership in overview.members
        ),
    }
    forms = (limits, member, delegate, invite, service)
    has_errors = any(form and form.errors for form in forms)
    return render(request, "dashboard/admin_team.html", context, status=422 if has_errors else 200)
