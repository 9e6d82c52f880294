"""Token issuers, for platform admins."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods, require_POST

from deployments.callers.selectors import token_issuers as selectors
from deployments.callers.services import token_issuers
from deployments.callers.web.issuer_form import IssuerForm
from fleet.clusters.selectors import clusters
from portal.accounts.models import User
from portal.ui.admin_pages import AdminPage, admins_only

_PAGE = AdminPage(
    title="Token issuers",
    explanation="Identity providers whose tokens callers may send instead of a key. Add the callers of a "
    "deployment in its Callers tab.",
    tab="token-issuers",
    url="admin-token-issuers",
    template="callers/admin_issuers.html",
)


@require_http_methods(["GET", "POST"])
@admins_only
def issuers(request: HttpRequest, user: User) -> HttpResponse:
    form = IssuerForm(request.POST or None, clusters=clusters.list_clusters())
    if request.method == "POST":
        row = form.run(lambda: token_issuers.add(actor=user, draft=form.draft()))
        if row is not None:
            return _PAGE.redirect_with_message(request, f"{row.name} is registered.")
    users = selectors.users()
    rows = [(row, users[row.name]) for row in selectors.list_registered()]
    return _PAGE.show(request, {"issuers": rows, "form": form}, status=form.status)


@require_POST
@admins_only
def remove(request: HttpRequest, user: User, token_issuer_id: int) -> HttpResponse:
    return _PAGE.answer(
        request,
        lambda: token_issuers.remove(actor=user, issuer_id=token_issuer_id),
        "The issuer is removed. Requests can no longer name it.",
    )


_ISSUERS = "admin/token-issuers"
urlpatterns: list[URLPattern] = [
    path(_ISSUERS, issuers, name="admin-token-issuers"),
    path(f"{_ISSUERS}/<int:token_issuer_id>/remove", remove, name="remove-token-issuer"),
]
