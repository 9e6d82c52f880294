"""Set whether a team's changes reach its clusters directly or through Git. For platform admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from deployments.delivery.services import git_settings
from deployments.delivery.web.admin_forms import GitForm
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.core.errors import Invalid
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@require_http_methods(["GET", "POST"])
@people_only
def set_delivery(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    policy.require_platform_admin(user)
    team = teams.get_visible(actor=user, slug=slug)
    form = (
        GitForm(request.POST)
        if request.method == "POST"
        else GitForm.from_delivery(git_settings.delivery_of(team))
    )
    if request.method == "POST" and form.is_valid() and _save(user, team, form):
        target = "through Git" if form.draft().is_enabled else "directly to the cluster"
        messages.success(request, f"Changes of {slug} go {target} from now on.")
        return redirect("admin-team-delivery", slug=slug)
    return _page(request, team, form, None)


@require_POST
@people_only
def test_delivery(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    result = git_settings.test_connection(actor=user, team=team)
    return _page(request, team, GitForm.from_delivery(git_settings.delivery_of(team)), result)


def _save(user: User, team: Team, form: GitForm) -> bool:
    """Save the settings. False if they were refused; the form then shows why."""
    try:
        git_settings.save(actor=user, team=team, draft=form.draft())
    except Invalid as error:
        add_to(form, error)
        return False
    return True


def _page(
    request: HttpRequest,
    team: Team,
    form: GitForm,
    connection_test: git_settings.ConnectionTest | None,
) -> HttpResponse:
    context = {
        "team": team,
        "form": form,
        "delivery": git_settings.delivery_of(team),
        "connection_test": connection_test,
    }
    status = 422 if form.errors else 200
    return render(request, "delivery/admin_team_delivery.html", context, status=status)
