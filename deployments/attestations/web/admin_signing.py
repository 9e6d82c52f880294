"""Trusted signers and signing rules, for platform admins."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from deployments.attestations.selectors import attestations, trust_roots
from deployments.attestations.services import trust
from deployments.attestations.web import removals
from deployments.attestations.web.forms import (
    IdentityForm,
    SignerForm,
    SigningRuleForm,
    TrustRootForm,
)
from deployments.attestations.web.removals import PAGE, Removal
from portal.accounts import policy
from portal.accounts.models import User
from portal.ui.admin_pages import admins_only


@require_GET
@admins_only
def signing(request: HttpRequest, user: User) -> HttpResponse:
    return show(request, user)


@require_POST
@admins_only
def add_signer(request: HttpRequest, user: User) -> HttpResponse:
    form = SignerForm(request.POST, teams=policy.visible_teams(user))
    row = form.run(lambda: trust.add_signer(actor=user, draft=form.draft()))
    if row is None:
        return show(request, user, signer_form=form)
    return PAGE.redirect_with_message(
        request, f"{row.name} is trusted. Attestations are verified again."
    )


@require_POST
@admins_only
def add_identity(request: HttpRequest, user: User) -> HttpResponse:
    form = _identity_form(user, request)
    row = form.run(lambda: trust.add_signer(actor=user, draft=form.draft()))
    if row is None:
        return show(request, user, identity_form=form)
    return PAGE.redirect_with_message(
        request, f"{row.name} is trusted. Attestations are verified again."
    )


@require_http_methods(["GET", "POST"])
@admins_only
def remove_signer(request: HttpRequest, user: User, signer_id: int) -> HttpResponse:
    row = trust_roots.get_signer(actor=user, signer_id=signer_id)
    removal = Removal("signer", row.name, (row.pk,), reverse("remove-signer", args=[row.pk]))
    return removals.answer(
        request, user, removal, lambda: trust.remove_signer(actor=user, signer_id=signer_id)
    )


@require_POST
@admins_only
def make_rule(request: HttpRequest, user: User) -> HttpResponse:
    form = _rule_form(user, request)
    row = form.run(lambda: trust.make_rule(actor=user, draft=form.draft()))
    if row is None:
        return show(request, user, rule_form=form)
    return PAGE.redirect_with_message(request, f"{row.name} is created.")


@require_POST
@admins_only
def delete_rule(request: HttpRequest, user: User, signing_rule_id: int) -> HttpResponse:
    trust.delete_rule(actor=user, rule_id=signing_rule_id)
    return PAGE.redirect_with_message(request, "The signing rule is deleted.")


def _rule_form(user: User, request: HttpRequest | None = None) -> SigningRuleForm:
    return SigningRuleForm(
        request.POST if request else None,
        teams=policy.visible_teams(user),
        signers=attestations.list_signers(user),
    )


def _identity_form(user: User, request: HttpRequest | None = None) -> IdentityForm:
    return IdentityForm(
        request.POST if request else None,
        teams=policy.visible_teams(user),
        roots=trust_roots.list_roots(),
    )


def show(
    request: HttpRequest,
    user: User,
    *,
    signer_form: SignerForm | None = None,
    identity_form: IdentityForm | None = None,
    rule_form: SigningRuleForm | None = None,
    root_form: TrustRootForm | None = None,
) -> HttpResponse:
    refused = signer_form or identity_form or rule_form or root_form
    context = {
        "signers": attestations.list_signers(user),
        "rules": attestations.list_rules(user),
        "roots": trust_roots.list_roots(),
        "signer_form": signer_form or SignerForm(teams=policy.visible_teams(user)),
        "identity_form": identity_form or _identity_form(user),
        "rule_form": rule_form or _rule_form(user),
        "root_form": root_form or TrustRootForm(),
    }
    return PAGE.show(request, context, status=refused.status if refused else 200)


_SIGNERS, _RULES = "admin/signing/signers", "admin/signing/rules"
urlpatterns: list[URLPattern] = [
    path("admin/signing", signing, name="admin-signing"),
    path(_SIGNERS, add_signer, name="add-signer"),
    path("admin/signing/identities", add_identity, name="add-identity"),
    path(f"{_SIGNERS}/<int:signer_id>/remove", remove_signer, name="remove-signer"),
    path(_RULES, make_rule, name="make-signing-rule"),
    path(f"{_RULES}/<int:signing_rule_id>/delete", delete_rule, name="delete-signing-rule"),
]
