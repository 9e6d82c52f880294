"""Search: a dropdown while typing, a page without JavaScript."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.models import User
from portal.dashboard import jump_targets
from portal.ui import htmx, teams
from portal.ui.access import people_only


@require_GET
@people_only
def jump(request: HttpRequest, user: User) -> HttpResponse:
    """Show the results; Enter with exactly one result redirects to it."""
    text = request.GET.get("q", "")[:100]
    targets = jump_targets.find(actor=user, team=teams.get_last_used(request), text=text)
    if not htmx.is_partial(request) and text and len(targets) == 1:
        return HttpResponseRedirect(targets[0].url)
    name = htmx.template_for(
        request, page="dashboard/jump.html", fragment="dashboard/_jump_results.html"
    )
    return render(request, name, {"targets": targets, "text": text})
