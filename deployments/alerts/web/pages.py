"""The inbox of alerts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from deployments.alerts.domain import catalogue
from deployments.alerts.domain.signals import AlertState
from deployments.alerts.selectors import alerts
from deployments.alerts.services import silences
from deployments.models import Alert
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import DomainError, Forbidden, NotFound
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond
from portal.ui.lists import FilterForm, plain_select

_PER_PAGE: Final = 25
HOURS: Final = ((1, "1 hour"), (8, "8 hours"), (24, "1 day"), (168, "7 days"), (720, "30 days"))
_STATES: Final = [("all", "All"), *((s.value, s.value.capitalize()) for s in AlertState)]


class AlertFilterForm(FilterForm):
    state = forms.ChoiceField(
        required=False, choices=[("", "Open"), *_STATES], widget=plain_select("Status")
    )
    kind = forms.ChoiceField(
        required=False,
        choices=[("", "Any kind"), *((code, k.label) for code, k in catalogue.KINDS.items())],
        widget=plain_select("Kind"),
    )
    team = forms.SlugField(required=False, max_length=40, widget=forms.HiddenInput)


class SilenceForm(forms.Form):
    hours = forms.IntegerField()
    reason = forms.CharField()


@dataclass(frozen=True, slots=True)
class AlertRow:
    alert: Alert
    label: str
    advice: str
    state: AlertState
    can_silence: bool


@require_GET
@people_only
def inbox(request: HttpRequest, user: User) -> HttpResponse:
    form = AlertFilterForm(request)
    chosen = form.cleaned_data.get("state") or AlertState.OPEN.value
    rows = alerts.list_visible_to(
        user,
        team_slug=form.cleaned_data.get("team", ""),
        state="" if chosen == "all" else chosen,
        kind=form.cleaned_data.get("kind", ""),
    )
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    visible = teams.visible(request)
    may = {team.pk: policy.is_allowed(user, Action.SILENCE_ALERTS, team) for team in _teams(page)}
    context: dict[str, Any] = {
        "form": form,
        "page": page,
        "rows": [_row(alert, may) for alert in page],
        "teams": visible,
        "hours": HOURS,
        "is_open_only": chosen == AlertState.OPEN,
    }
    return respond(request, "alerts/inbox.html", context, parts={"alerts": "alerts/_rows.html"})


@require_POST
@people_only
def silence(request: HttpRequest, user: User, alert_id: int) -> HttpResponse:
    form = SilenceForm(request.POST)
    form.full_clean()
    # The service refuses what is missing, and says what may be sent.
    hours, reason = form.cleaned_data.get("hours", 0), form.cleaned_data.get("reason", "")
    return _answered(
        request,
        lambda: silences.silence(actor=user, alert_id=alert_id, hours=hours, reason=reason),
        "Silenced.",
    )


@require_POST
@people_only
def unsilence(request: HttpRequest, user: User, alert_id: int) -> HttpResponse:
    return _answered(
        request, lambda: silences.unsilence(actor=user, alert_id=alert_id), "No longer silenced."
    )


def _answered(request: HttpRequest, call: Callable[[], Alert], message: str) -> HttpResponse:
    try:
        call()
    except (NotFound, Forbidden):
        raise
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, message)
    return redirect("alerts")


def _teams(page: Any) -> list[Any]:
    return list({alert.team_id: alert.team for alert in page}.values())


def _row(alert: Alert, may: dict[int, bool]) -> AlertRow:
    kind = catalogue.KINDS.get(alert.kind)
    return AlertRow(
        alert=alert,
        label=kind.label if kind else alert.kind,
        advice=kind.advice if kind else "",
        state=alerts.state_of(alert),
        can_silence=may[alert.team_id] and alert.ended_at is None,
    )
