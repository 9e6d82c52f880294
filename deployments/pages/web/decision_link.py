"""The page behind the single-use link of a message: shows what is asked, then decides."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from deployments.selectors import rollouts
from deployments.services import decisions
from deployments.services.decisions import Asked
from deployments.web import change_items, rollout_story
from deployments.web.service_forms import ServiceForm
from portal.accounts.models import User
from portal.ui.access import people_only

_DONE: Final = {
    "promote": "Promoted one step.",
    "abort": "Aborting: all requests go back to the stable revision.",
    "approve": "Approved.",
    "reject": "Rejected.",
}


class DecideForm(ServiceForm):
    choice = forms.ChoiceField(choices=[(name, name) for name in _DONE])
    comment = forms.CharField(required=False, max_length=500, label="Comment")


# Looking never decides: chat programs and mail filters open every link that they see.
@never_cache
@require_http_methods(["GET", "POST"])
@people_only
def decide(request: HttpRequest, user: User, token: str) -> HttpResponse:
    form = DecideForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        done = form.run(lambda: _decide(user, token, form))
        if done is not None:
            messages.success(request, _DONE[form.cleaned_data["choice"]])
            return redirect(done.path)
    asked = decisions.look(actor=user, token=token)
    status = form.status if form.is_bound else 200
    return render(request, "delivery/decide.html", _context(user, asked, form), status=status)


def _decide(user: User, token: str, form: DecideForm) -> Asked:
    data = form.cleaned_data
    return decisions.decide(actor=user, token=token, choice=data["choice"], comment=data["comment"])


def _context(user: User, asked: Asked, form: DecideForm) -> dict[str, Any]:
    context: dict[str, Any] = {"asked": asked, "notice": asked.link.delivery.notice, "form": form}
    if asked.rollout is not None:
        view = rollouts.view_of(actor=user, rollout=asked.rollout)
        context |= {"view": view, "verdict": rollout_story.verdict_of(view)}
    if asked.change is not None:
        context |= {
            "change": asked.change,
            "item": change_items.item_of(asked.change),
            "change_lines": change_items.lines_of(asked.change),
        }
    return context
