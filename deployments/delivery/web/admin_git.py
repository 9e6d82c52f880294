"""Whether a team's changes reach its clusters straight or through Git. For platform admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from deployments.delivery.services import git_settings
from deployments.delivery.web.admin_forms import GitForm
from deployments.models import GitDelivery
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
    form = GitForm(request.POST) if request.method == "POST" else GitForm.of(_delivery(team))
    if request.method == "POST" and form.is_valid() and _is_chosen(user, team, form):
        way = "through Git" if form.draft().is_enabled else "directly to the cluster"
        messages.success(request, f"Changes of {slug} go {way} from now on.")
        return redirect("admin-team-delivery", slug=slug)
    return _page(request, team, form, None)


@require_POST
@people_only
def try_delivery(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    tried = git_settings.try_out(actor=user, team=team)
    return _page(request, team, GitForm.of(_delivery(team)), tried)


def _delivery(team: Team) -> GitDelivery | None:
    return git_settings.delivery_of(team)


def _is_chosen(user: User, team: Team, form: GitForm) -> bool:
    try:
        git_settings.choose(actor=user, team=team, draft=form.draft())
    except Invalid as error:
        add_to(form, error)
        return False
    return True


def _page(
    request: HttpRequest, team: Team, form: GitForm, tried: git_settings.Tried | None
) -> HttpResponse:
    context = {"team": team, "form": form, "delivery": _delivery(team), "tried": tried}
    status = 422 if form.errors else 200
    return render(request, "delivery/admin_team_delivery.html", context, status=status)
