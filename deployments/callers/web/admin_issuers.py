"""Token issuers, for platform admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods, require_POST

from deployments.callers.selectors import token_issuers as selectors
from deployments.callers.services import token_issuers
from deployments.callers.web.issuer_form import IssuerForm
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import Conflict
from portal.ui.access import people_only


@require_http_methods(["GET", "POST"])
@people_only
def issuers(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    form = IssuerForm(request.POST or None, clusters=clusters.list_clusters())
    if request.method == "POST":
        row = form.run(lambda: token_issuers.add(actor=user, draft=form.draft()))
        if row is not None:
            messages.success(request, f"{row.name} is registered.")
            return redirect("admin-token-issuers")
    users = selectors.users()
    rows = [(row, users[row.name]) for row in selectors.registered()]
    context = {"issuers": rows, "form": form}
    return render(request, "callers/admin_issuers.html", context, status=form.status)


@require_POST
@people_only
def remove(request: HttpRequest, user: User, token_issuer_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    try:
        token_issuers.remove(actor=user, issuer_id=token_issuer_id)
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "The issuer is removed. No request can name it any more.")
    return redirect("admin-token-issuers")


_ISSUERS = "admin/token-issuers"
urlpatterns: list[URLPattern] = [
    path(_ISSUERS, issuers, name="admin-token-issuers"),
    path(f"{_ISSUERS}/<int:token_issuer_id>/remove", remove, name="remove-token-issuer"),
]
