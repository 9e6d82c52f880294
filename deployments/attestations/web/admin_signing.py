"""Trusted signers and signing rules, for platform admins."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_GET, require_POST

from deployments.attestations.selectors import attestations
from deployments.attestations.services import trust
from deployments.attestations.web.forms import SignerForm, SigningRuleForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.ui.admin_pages import AdminPage, admins_only

_PAGE = AdminPage(
    title="Signing",
    explanation="Who is trusted to sign models, and where a signature is required. What is served already stays.",
    tab="signing",
    url="admin-signing",
    template="attestations/admin_signing.html",
)


@require_GET
@admins_only
def signing(request: HttpRequest, user: User) -> HttpResponse:
    return _page(request, user)


@require_POST
@admins_only
def add_signer(request: HttpRequest, user: User) -> HttpResponse:
    form = SignerForm(request.POST, teams=policy.visible_teams(user))
    row = form.run(lambda: trust.add_signer(actor=user, draft=form.draft()))
    if row is None:
        return _page(request, user, signer_form=form)
    return _PAGE.done(request, f"{row.name} is trusted. Attestations are verified again.")


@require_POST
@admins_only
def remove_signer(request: HttpRequest, user: User, signer_id: int) -> HttpResponse:
    return _PAGE.answer(
        request,
        lambda: trust.remove_signer(actor=user, signer_id=signer_id),
        "The signer is removed. Its signatures count no more.",
    )


@require_POST
@admins_only
def make_rule(request: HttpRequest, user: User) -> HttpResponse:
    form = _rule_form(user, request)
    row = form.run(lambda: trust.make_rule(actor=user, draft=form.draft()))
    if row is None:
        return _page(request, user, rule_form=form)
    return _PAGE.done(request, f"{row.name} is created.")


@require_POST
@admins_only
def delete_rule(request: HttpRequest, user: User, signing_rule_id: int) -> HttpResponse:
    trust.delete_rule(actor=user, rule_id=signing_rule_id)
    return _PAGE.done(request, "The signing rule is deleted.")


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
    return _PAGE.show(request, context, status=status)


_SIGNERS, _RULES = "admin/signing/signers", "admin/signing/rules"
urlpatterns: list[URLPattern] = [
    path("admin/signing", signing, name="admin-signing"),
    path(_SIGNERS, add_signer, name="add-signer"),
    path(f"{_SIGNERS}/<int:signer_id>/remove", remove_signer, name="remove-signer"),
    path(_RULES, make_rule, name="make-signing-rule"),
    path(f"{_RULES}/<int:signing_rule_id>/delete", delete_rule, name="delete-signing-rule"),
]
