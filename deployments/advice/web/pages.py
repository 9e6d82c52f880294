"""The pages of advice and of what-if."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import MONTHS_PER_YEAR
from deployments.advice.selectors import items
from deployments.advice.services import answers
from deployments.models import AdviceItem
from deployments.states import AdviceState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import DomainError, NotFound
from portal.ui import teams
from portal.ui.access import people_only

SNOOZES: Final = ((7, "1 week"), (30, "1 month"), (90, "3 months"))


@dataclass(frozen=True, slots=True)
class AdviceRow:
    item: AdviceItem
    title: str
    can_answer: bool

    @property
    def year_amount(self) -> Decimal:
        return self.item.saving_amount * MONTHS_PER_YEAR

    @property
    def can_request(self) -> bool:
        return self.can_answer and bool(self.item.proposal)

    @property
    def realised_percent(self) -> int | None:
        """Of what was promised."""
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
    days = request.POST.get("days", "")
    number = int(days) if days.isdecimal() and len(days) < 4 else 0
    return _answered(
        request, user, lambda: answers.snooze(actor=user, item_id=item_id, days=number), "Snoozed."
    )


@require_POST
@people_only
def dismiss(request: HttpRequest, user: User, item_id: int) -> HttpResponse:
    reason = request.POST.get("reason", "")
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
        request, user, lambda: answers.reopen(actor=user, item_id=item_id), "Open again."
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
    chosen = request.GET.get("of", "")
    slug = chosen if chosen in {team.slug for team in visible} else ""
    rows = list(items.list_visible_to(user, team_slug=slug)[: items.MOST])
    may = {team.pk: policy.is_allowed(user, Action.REQUEST_CHANGE, team) for team in visible}
    shown = [_row(item, may, user) for item in rows]
    opened = _of(shown, AdviceState.OPEN)
    total = items.total_saving([row.item for row in opened])
    context: dict[str, Any] = {
        "open": opened,
        "snoozed": _of(shown, AdviceState.SNOOZED, AdviceState.DISMISSED),
        "followed": _of(shown, *items.FOLLOWED),
        "month_amount": total,
        "year_amount": total * MONTHS_PER_YEAR,
        "snoozes": SNOOZES,
        "teams": visible,
        "chosen": slug,
        "refusal": refusal,
    }
    status = int(refusal.status) if refusal else 200
    return render(request, "advice/advice.html", context, status=status)


def _row(item: AdviceItem, may: dict[int, bool], user: User) -> AdviceRow:
    can_answer = may.get(item.team_id, False) if item.team_id else user.is_platform_admin
    return AdviceRow(item, catalogue.TITLES.get(item.kind, item.kind), can_answer)


def _of(rows: Sequence[AdviceRow], *states: AdviceState) -> list[AdviceRow]:
    return [row for row in rows if row.item.state in states]
