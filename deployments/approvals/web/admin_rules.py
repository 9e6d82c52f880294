"""Approval rules for platform admins, and the delegates of a team's leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods, require_POST

from deployments.approvals.selectors import approvals
from deployments.approvals.services import rules
from deployments.approvals.web.admin_forms import RuleForm, initial_of
from deployments.models import ApprovalRule
from deployments.plans.domain import descriptions
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.core.errors import Conflict, Invalid
from portal.ui.admin_pages import AdminPage, admins_only
from portal.ui.form_errors import add_to

_PAGE = AdminPage(
    title="Approval rules",
    explanation="Every matching rule must be satisfied. Changing a rule voids the approvals given under it.",
    tab="policy",
    url="admin-policy",
    template="approvals/admin_policy.html",
)


@dataclass(frozen=True, slots=True)
class RuleRow:
    rule: ApprovalRule
    kinds: list[str]


@require_http_methods(["GET", "POST"])
@admins_only
def rule_list(request: HttpRequest, user: User) -> HttpResponse:
    form = RuleForm(request.POST or None, teams=_teams(user))
    if request.method == "POST":
        made = _run(form, lambda: rules.make(actor=user, draft=form.draft(is_enabled=True)))
        if made is not None:
            return _PAGE.redirect_with_message(request, f"{made.name} created.")
    return _page(request, user, form)


@require_http_methods(["GET", "POST"])
@admins_only
def rule(request: HttpRequest, user: User, rule_id: int) -> HttpResponse:
    row = rules.get(rule_id)
    form = RuleForm(
        request.POST or None, teams=_teams(user), initial=initial_of(rules.draft_of(row))
    )
    if request.method == "POST":
        changed = _run(
            form,
            lambda: rules.change(
                actor=user, rule_id=rule_id, draft=form.draft(is_enabled=row.is_enabled)
            ),
        )
        if changed is not None:
            return _PAGE.redirect_with_message(request, f"{changed.name} saved.")
    return _page(request, user, form, edited=row)


@require_POST
@admins_only
def switch(request: HttpRequest, user: User, rule_id: int) -> HttpResponse:
    """Disable a rule, or enable it again."""
    row = rules.get(rule_id)
    draft = replace(rules.draft_of(row), is_enabled=not row.is_enabled)
    rules.change(actor=user, rule_id=rule_id, draft=draft)
    switched = "disabled" if row.is_enabled else "enabled"
    return _PAGE.redirect_with_message(request, f"{row.name} is {switched}.")


@require_POST
@admins_only
def delete(request: HttpRequest, user: User, rule_id: int) -> HttpResponse:
    name = rules.get(rule_id).name
    return _PAGE.answer(
        request, lambda: rules.delete(actor=user, rule_id=rule_id), f"{name} deleted."
    )


def _teams(user: User) -> list[Team]:
    return list(policy.visible_teams(user))


def _run(form: RuleForm, call: Callable[[], ApprovalRule]) -> ApprovalRule | None:
    if not form.is_valid():
        return None
    try:
        return call()
    except (Conflict, Invalid) as error:
        add_to(form, error)
        return None


def _page(
    request: HttpRequest, user: User, form: RuleForm, edited: ApprovalRule | None = None
) -> HttpResponse:
    rows = [
        RuleRow(row, [descriptions.KIND_NAMES[kind] for kind in row.kinds])
        for row in approvals.list_rules(user)
    ]
    context = {"rules": rows, "form": form, "edited": edited}
    status = 422 if form.errors else 200
    return _PAGE.show(request, context, status=status)
