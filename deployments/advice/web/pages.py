"""The pages of advice and of what-if."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import MONTHS_PER_YEAR
from deployments.advice.domain.certainty import Certainty, find_certainty
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.selectors import items
from deployments.advice.services import answers
from deployments.models import AdviceItem
from deployments.states import AdviceState
from fleet.capacity.selectors import node_details
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import DomainError, NotFound
from portal.ui import teams
from portal.ui.access import people_only

_PER_PAGE: Final = 20
_FEW: Final = 10
# What can be listed alone, by name.
_SECTIONS: Final = {"followed": items.FOLLOWED, "answered": items.ANSWERED}
SNOOZES: Final = ((7, "1 week"), (30, "1 month"), (90, "3 months"))


class SnoozeForm(forms.Form):
    days = forms.IntegerField()


class DismissForm(forms.Form):
    reason = forms.CharField()


@dataclass(frozen=True, slots=True)
class AdviceRow:
    item: AdviceItem
    title: str
    can_answer: bool
    # Of an unused node that is still there.
    node_id: int | None = None

    @property
    def year_amount(self) -> Decimal:
        return self.item.saving_amount * MONTHS_PER_YEAR

    @property
    def evidence(self) -> list[EvidenceLine]:
        return [EvidenceLine.from_json(row) for row in self.item.evidence]

    @property
    def certainty(self) -> Certainty:
        return find_certainty(self.item.kind, self.evidence)

    @property
    def can_request(self) -> bool:
        return self.can_answer and bool(self.item.proposal)

    @property
    def realised_percent(self) -> int | None:
        """The realised saving in percent of the promised one. None if either is not known."""
        realised, promised = self.item.realised_amount, self.item.saving_amount
        return None if realised is None or not promised else round(realised * 100 / promised)


@require_GET
@people_only
def advice_page(request: HttpRequest, user: User) -> HttpResponse:
    return _show(request, user)


@require_POST
@people_only
def request_change(request: HttpRequest, user: User, item_id: int) -> HttpResponse:
    try:
        change = answers.request(actor=user, item_id=item_id)
    except NotFound:
        raise
    except DomainError as error:
        return _show(request, user, refusal=error)
    messages.success(request, "Request sent. Waiting for an approver.")
    return redirect("change", change_id=change.pk)


@require_POST
@people_only
def snooze(request: HttpRequest, user: User, item_id: int) -> HttpResponse:
    form = SnoozeForm(request.POST)
    # The service refuses 0, and says what may be sent.
    days = form.cleaned_data["days"] if form.is_valid() else 0
    return _answered(
        request, user, lambda: answers.snooze(actor=user, item_id=item_id, days=days), "Snoozed."
    )


@require_POST
@people_only
def dismiss(request: HttpRequest, user: User, item_id: int) -> HttpResponse:
    form = DismissForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    return _answered(
        request,
        user,
        lambda: answers.dismiss(actor=user, item_id=item_id, reason=reason),
        "Dismissed.",
    )


@require_POST
@people_only
def reopen(request: HttpRequest, user: User, item_id: int) -> HttpResponse:
    return _answered(
        request, user, lambda: answers.reopen(actor=user, item_id=item_id), "Advice reopened."
    )


def _answered(
    request: HttpRequest, user: User, call: Callable[[], AdviceItem], message: str
) -> HttpResponse:
    try:
        call()
    except NotFound:
        raise
    except DomainError as error:
        return _show(request, user, refusal=error)
    messages.success(request, message)
    return redirect("advice")


def _show(request: HttpRequest, user: User, refusal: DomainError | None = None) -> HttpResponse:
    visible = teams.visible(request)
    chosen = request.GET.get(teams.FILTER, "")
    slug = chosen if chosen in {team.slug for team in visible} else ""
    shown = request.GET.get("show", "")
    shown = shown if shown in _SECTIONS else ""

    def rows_of(states: Sequence[str]) -> QuerySet[AdviceItem]:
        return items.list_visible_to(user, team_slug=slug, states=states)

    listed = rows_of(_SECTIONS.get(shown, (AdviceState.OPEN,)))
    page = Paginator(listed, _PER_PAGE).get_page(request.GET.get("page"))
    found: dict[str, list[AdviceItem]] = {shown or "open": list(page)}
    if not shown:
        found["answered"] = list(rows_of(items.ANSWERED)[:_FEW])
    totals = items.totals(user, team_slug=slug)
    shown_teams = {item.team for item in itertools.chain(*found.values()) if item.team}
    node_uids = [item.node_uid for item in itertools.chain(*found.values()) if item.node_uid]
    nodes = node_details.present_ids(node_uids)
    may = {team: policy.is_allowed(user, Action.REQUEST_CHANGE, team) for team in shown_teams}
    context: dict[str, Any] = {
        "totals": totals,
        "year_amount": totals.month_amount * MONTHS_PER_YEAR,
        "shown": shown,
        "page": page,
        "few": _FEW,
        "snoozes": SNOOZES,
        "teams": visible,
        "chosen": slug,
        "refusal": refusal,
        **{name: [_row(item, may, user, nodes) for item in rows] for name, rows in found.items()},
    }
    status = int(refusal.status) if refusal else 200
    return render(request, "advice/advice.html", context, status=status)


def _row(
    item: AdviceItem, may: Mapping[Team, bool], user: User, nodes: Mapping[str, int]
) -> AdviceRow:
    can_answer = user.is_platform_admin if item.team is None else may[item.team]
    title = catalogue.TITLES.get(item.kind, item.kind)
    return AdviceRow(item, title, can_answer, nodes.get(item.node_uid))
