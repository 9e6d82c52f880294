"""The what-if page: two scenarios side by side, line by line."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from deployments.advice.domain import what_if
from deployments.advice.domain.what_if import PublishedCase, Scenario, ScenarioComparison
from deployments.advice.selectors import scenarios
from deployments.advice.selectors.scenarios import Start
from deployments.advice.web.scenario_form import ScenarioForm
from portal.accounts.models import User
from portal.ui.access import people_only

_EXAMPLE: Final = Scenario(usd_per_hour_amount=Decimal("1.006"))


@require_GET
@people_only
def what_if_page(request: HttpRequest, user: User) -> HttpResponse:
    """Show the what-if page. `deployment` starts with a deployment of the reader, `case` with a published one."""
    case = _case(request.GET.get("case", ""))
    label = "" if case else request.GET.get("deployment", "")
    start = scenarios.start_from_deployment(actor=user, label=label) if label else Start(None)
    now = case.now if case else start.scenario or _EXAMPLE
    then = case.then if case else now
    given = request.GET if "now-price" in request.GET else None
    prices = scenarios.instance_prices()
    now_form, then_form = (
        ScenarioForm(given, prefix=prefix, initial=scenario, prices=prices)
        for prefix, scenario in (("now", now), ("then", then))
    )
    is_start = given is None
    comparison = what_if.compare(now, then) if is_start else _compare(now_form, then_form)
    context = {
        "now_form": now_form,
        "then_form": then_form,
        "pairs": list(zip(now_form.visible_fields(), then_form.visible_fields(), strict=True)),
        "comparison": comparison,
        "lines": list(zip(comparison.now, comparison.then, strict=True)) if comparison else [],
        "case": case if is_start else None,
        "cases": what_if.published_cases(),
        "label": label,
        "remarks": start.remarks if is_start else (),
        "instances": prices,
    }
    status = 200 if comparison else 422
    return render(request, "advice/what_if.html", context, status=status)


def _compare(now: ScenarioForm, then: ScenarioForm) -> ScenarioComparison | None:
    # Both, so that each shows its errors.
    valid = [form.is_valid() for form in (now, then)]
    return what_if.compare(now.scenario, then.scenario) if all(valid) else None


def _case(code: str) -> PublishedCase | None:
    return next((case for case in what_if.published_cases() if case.code == code), None)
