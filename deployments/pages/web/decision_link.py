"""The page of a single-use link in a notification: show the request, then decide."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from deployments.changes.web import field_diff, items
from deployments.lifecycle.services import decision_links
from deployments.lifecycle.services.decision_links import LinkedDecision
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.web import activity
from portal.accounts.models import User
from portal.notifications import links
from portal.ui.access import keeps_input, people_only
from portal.ui.service_form import ServiceForm

_DONE: Final = {
    "promote": "Promoted one step.",
    "abort": "Aborting. All requests go back to the stable revision.",
    "approve": "Approved.",
    "reject": "Rejected.",
}


class DecideForm(ServiceForm):
    choice = forms.ChoiceField(choices=[(name, name) for name in _DONE])
    comment = forms.CharField(required=False, max_length=500, label="Comment")


_SESSION_KEY: Final = "opened_decision_links"
_MAX_OPENED: Final = 20


@never_cache
@require_safe
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Redirect immediately, before sign-in, to a URL without the token: browsers send URLs as
    Referer, and logs and histories keep them.
    """
    digest = links.known_digest(token)
    others = [opened for opened in _opened(request) if opened != digest]
    request.session[_SESSION_KEY] = [*others, digest][-_MAX_OPENED:]
    response = redirect("decide", links.find_id(digest))
    response["Referrer-Policy"] = "no-referrer"
    return response


def _opened(request: HttpRequest) -> list[str]:
    return list(request.session.get(_SESSION_KEY, []))


# GET never decides: chat and mail programs open links automatically.
@never_cache
@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def decide(request: HttpRequest, user: User, link_id: int) -> HttpResponse:
    form = DecideForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        done = form.run(lambda: _decide(request, user, link_id, form))
        if done is not None:
            messages.success(request, _DONE[form.cleaned_data["choice"]])
            return redirect(done.path)
    decision = decision_links.read(actor=user, link_id=link_id, opened=_opened(request))
    status = form.status if form.is_bound else 200
    return render(request, "pages/decide.html", _context(user, decision, form), status=status)


def _decide(request: HttpRequest, user: User, link_id: int, form: DecideForm) -> LinkedDecision:
    data = form.cleaned_data
    return decision_links.decide(
        actor=user,
        link_id=link_id,
        opened=_opened(request),
        choice=data["choice"],
        comment=data["comment"],
    )


def _context(user: User, decision: LinkedDecision, form: DecideForm) -> dict[str, Any]:
    context: dict[str, Any] = {
        "decision": decision,
        "notice": decision.link.delivery.notice,
        "form": form,
    }
    if decision.rollout is not None:
        view = rollouts.view_of(actor=user, rollout=decision.rollout)
        context |= {"view": view, "verdict": activity.verdict_of(view)}
    if decision.change is not None:
        context |= {
            "change": decision.change,
            "item": items.item_of(decision.change),
            "diff": field_diff.build_diff(decision.change),
        }
    return context
