"""Trusted signers and signing rules, for platform admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.http import require_GET, require_POST

from deployments.attestations.selectors import attestations
from deployments.attestations.services import trust
from deployments.attestations.web.forms import SignerForm, SigningRuleForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import Conflict
from portal.ui.access import people_only


@require_GET
@people_only
def signing(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    return _page(request, user)


@require_POST
@people_only
def add_signer(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    form = SignerForm(request.POST, teams=policy.visible_teams(user))
    row = form.run(lambda: trust.add_signer(actor=user, draft=form.draft()))
    if row is None:
        return _page(request, user, signer_form=form)
    messages.success(request, f"{row.name} is trusted. Attestations are verified again.")
    return redirect("admin-signing")


@require_POST
@people_only
def remove_signer(request: HttpRequest, user: User, signer_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    try:
        trust.remove_signer(actor=user, signer_id=signer_id)
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "The signer is removed. Its signatures count no more.")
    return redirect("admin-signing")


@require_POST
@people_only
def make_rule(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    form = _rule_form(user, request)
    row = form.run(lambda: trust.make_rule(actor=user, draft=form.draft()))
    if row is None:
        return _page(request, user, rule_form=form)
    messages.success(request, f"{row.name} is created.")
    return redirect("admin-signing")


@require_POST
@people_only
def delete_rule(request: HttpRequest, user: User, signing_rule_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    trust.delete_rule(actor=user, rule_id=signing_rule_id)
    messages.success(request, "The signing rule is deleted.")
    return redirect("admin-signing")


def _rule_form(user: User, request: HttpRequest | None = None) -> SigningRuleForm:
    return SigningRuleForm(
        request.POST if request else None,
        teams=policy.visible_teams(user),
        signers=attestations.list_signers(user),
    )


def _page(
    request: HttpRequest,
    user: User,
    *,
    signer_form: SignerForm | None = None,
    rule_form: SigningRuleForm | None = None,
) -> HttpResponse:
    refused = signer_form or rule_form
    context = {
        "signers": attestations.list_signers(user),
        "rules": attestations.list_rules(user),
        "signer_form": signer_form or SignerForm(teams=policy.visible_teams(user)),
        "rule_form": rule_form or _rule_form(user),
    }
    status = refused.status if refused else 200
    return render(request, "attestations/admin_signing.html", context, status=status)


_SIGNERS, _RULES = "admin/signing/signers", "admin/signing/rules"
urlpatterns: list[URLPattern] = [
    path("admin/signing", signing, name="admin-signing"),
    path(_SIGNERS, add_signer, name="add-signer"),
    path(f"{_SIGNERS}/<int:signer_id>/remove", remove_signer, name="remove-signer"),
    path(_RULES, make_rule, name="make-signing-rule"),
    path(f"{_RULES}/<int:signing_rule_id>/delete", delete_rule, name="delete-signing-rule"),
]
