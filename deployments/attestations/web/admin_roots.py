"""Sigstore trust roots, for platform admins."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from deployments.attestations.selectors import trust_roots
from deployments.attestations.services import roots
from deployments.attestations.web import admin_signing, removals
from deployments.attestations.web.forms import TrustRootForm
from deployments.attestations.web.removals import PAGE, Removal
from portal.accounts.models import User
from portal.ui.admin_pages import admins_only


@require_POST
@admins_only
def add_root(request: HttpRequest, user: User) -> HttpResponse:
    form = TrustRootForm(request.POST, request.FILES)
    row = form.run(lambda: roots.add(actor=user, **form.draft()))
    if row is None:
        return admin_signing.show(request, user, root_form=form)
    return PAGE.redirect_with_message(
        request, f"{row.name} is added. Trust an identity under it next."
    )


@require_http_methods(["GET", "POST"])
@admins_only
def root(request: HttpRequest, user: User, root_id: int) -> HttpResponse:
    """Show the contents of a trust root. POST replaces its document."""
    row = trust_roots.get_root(root_id)
    form = TrustRootForm(None, is_new=False)
    if request.method == "POST":
        form = TrustRootForm(request.POST, request.FILES, is_new=False)
        done = form.run(lambda: roots.replace(actor=user, root_id=root_id, **form.draft()))
        if done is not None:
            return PAGE.redirect_with_message(
                request, f"{row.name} is replaced. Attestations are verified again."
            )
    context = {
        "root": row,
        "identities": trust_roots.identities_of(row),
        "root_form": form,
        "admin_page": PAGE,
    }
    return render(request, "attestations/trust_root.html", context, status=form.status)


@require_http_methods(["GET", "POST"])
@admins_only
def remove_root(request: HttpRequest, user: User, root_id: int) -> HttpResponse:
    row = trust_roots.get_root(root_id)
    identities = trust_roots.identities_of(row)
    removal = Removal(
        "trust root",
        row.name,
        tuple(one.pk for one in identities),
        reverse("remove-trust-root", args=[row.pk]),
        tuple(one.name for one in identities),
    )
    return removals.answer(
        request, user, removal, lambda: roots.remove(actor=user, root_id=root_id)
    )


_ROOTS = "admin/signing/roots"
urlpatterns: list[URLPattern] = [
    path(_ROOTS, add_root, name="add-trust-root"),
    path(f"{_ROOTS}/<int:root_id>", root, name="trust-root"),
    path(f"{_ROOTS}/<int:root_id>/remove", remove_root, name="remove-trust-root"),
]
