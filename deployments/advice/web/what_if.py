"""The what-if page: two scenarios side by side, line by line."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from deployments.advice.domain import what_if
from deployments.advice.domain.what_if import Comparison, PublishedCase, Scenario
from deployments.advice.selectors import scenarios
from portal.accounts.models import User
from portal.ui.access import people_only

_FIELDS = (
    ("price", "usd_per_hour_amount", "Instance price", "$ an hour", 10_000, 6),
    ("replicas", "replicas", "Replicas", "", 10_000, 2),
    ("share", "gpu_share_percent", "Share of the instance", "%", 100, 2),
    ("hours", "hours_per_week", "Hours a week", "of 168", 168, 2),
    ("spot", "spot_percent", "Hours on spot", "%", 100, 2),
    ("discount", "spot_discount_percent", "Spot is lower by", "%", 100, 2),
)


class ScenarioForm(forms.Form):
    """One column of the page; the prefix says which."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed through
        for name, _, label, unit, most, places in _FIELDS:
            self.fields[name] = forms.DecimalField(
                label=label,
                min_value=Decimal(0),
                max_value=Decimal(most),
                decimal_places=places,
                widget=forms.NumberInput(attrs={"data-unit": unit, "step": "any"}),
            )

    def scenario(self) -> Scenario:
        return Scenario(**{field: self.cleaned_data[name] for name, field, *_ in _FIELDS})


@require_GET
@people_only
def what_if_page(request: HttpRequest, user: User) -> HttpResponse:
    """`deployment` starts with a deployment of the reader, `case` with a published one."""
    case = _case(request.GET.get("case", ""))
    now, label = _start(request, user, case)
    given = request.GET if "now-price" in request.GET else None
    forms_of = [
        ScenarioForm(given, prefix=prefix, initial=_initial(scenario))
        for prefix, scenario in (("now", now), ("then", case.then if case else now))
    ]
    comparison = _compare(forms_of, now, case.then if case else now, is_given=given is not None)
    context = {
        "now_form": forms_of[0],
        "then_form": forms_of[1],
        "comparison": comparison,
        "lines": list(zip(comparison.now, comparison.then, strict=True)) if comparison else [],
        "case": None if given else case,
        "cases": what_if.published_cases(),
        "label": label,
    }
    status = 200 if comparison else 422
    return render(request, "advice/what_if.html", context, status=status)


def _start(request: HttpRequest, user: User, case: PublishedCase | None) -> tuple[Scenario, str]:
    if case is not None:
        return case.now, ""
    name = request.GET.get("deployment", "")
    if name:
        found = scenarios.of_deployment(actor=user, label=name)
        if found is not None:
            return found, name
    return Scenario(usd_per_hour_amount=Decimal("1.006")), ""


def _compare(
    forms_of: list[ScenarioForm], now: Scenario, then: Scenario, *, is_given: bool
) -> Comparison | None:
    if not is_given:
        return what_if.compare(now, then)
    # Both, so that each shows its errors.
    valid = [form.is_valid() for form in forms_of]
    if not all(valid):
        return None
    try:
        return what_if.compare(*(form.scenario() for form in forms_of))
    except InvalidOperation:
        return None


def _case(code: str) -> PublishedCase | None:
    return next((case for case in what_if.published_cases() if case.code == code), None)


def _initial(scenario: Scenario) -> dict[str, str]:
    return {name: f"{getattr(scenario, field).normalize():f}" for name, field, *_ in _FIELDS}
