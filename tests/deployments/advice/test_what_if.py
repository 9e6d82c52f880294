"""The arithmetic of what-if, with the two published cases followed figure by figure."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from deployments.advice.domain import what_if
from deployments.advice.domain.what_if import Scenario
from tests.deployments.world import World
from tests.page import page

_A, _B = what_if.published_cases()


def test_case_a_reproduces_the_ratio_and_states_the_true_dollars() -> None:
    result = what_if.compare(_A.now, _A.then)

    # 900 to 380 leaves 42.2%.
    assert (1 - Decimal(380) / 900).quantize(Decimal("0.001")) == Decimal("0.578")
    assert result.saved_percent == Decimal("57.8")
    assert result.now_month_amount == Decimal("5.67") * 730 == Decimal("4139.10")
    assert result.then_month_amount == Decimal("1747.90")
    assert [line.amount for line in result.then] == [
        Decimal("4139.10"),
        Decimal("4139.10"),
        Decimal("4139.10"),
        Decimal("1786.22"),  # times 72.5 / 168
        Decimal("1747.90"),  # times (1 less 3.3% times 65%)
    ]


def test_case_a_is_mostly_its_schedule() -> None:
    window = Decimal("14.5") * 5
    assert window == _A.then.hours_per_week
    alone = what_if.compare(
        _A.now, Scenario(usd_per_hour_amount=Decimal("5.67"), hours_per_week=window)
    )

    assert alone.saved_percent == Decimal("56.8")
    # $900 of $5.67/h are 159 hours, of the 730 of a month.
    assert round(900 / Decimal("5.67")) == 159
    assert "$4,139.10" in _A.remarks[2]


def test_case_b_lies_in_the_published_range() -> None:
    result = what_if.compare(_B.now, _B.then)

    assert result.now_month_amount == 7300
    # 10 less 2 by MIG less 1 by scale-down, then 30% of the hours 70% lower.
    assert result.then_month_amount == 7 * 730 * (1 - Decimal("0.3") * Decimal("0.7"))
    assert result.saved_percent == Decimal("44.7")
    assert result.saved_year_amount == Decimal("39157.20")


@pytest.mark.parametrize(("spot", "saved"), [(15, "37.4"), (20, "39.8"), (40, "49.6")])
def test_case_b_at_other_shares_of_spot(spot: int, saved: str) -> None:
    then = Scenario(
        usd_per_hour_amount=Decimal(1),
        replicas=Decimal(7),
        spot_percent=Decimal(spot),
        spot_discount_percent=Decimal(70),
    )

    # 37.35 is rounded half to even, as in the remark.
    percent = what_if.compare(_B.now, then).saved_percent
    assert percent is not None
    assert abs(percent - Decimal(saved)) <= Decimal("0.1")


_PERCENT = st.decimals(0, 100, places=2)
_SCENARIOS = st.builds(
    Scenario,
    usd_per_hour_amount=st.decimals(0, 1000, places=6),
    replicas=st.decimals(0, 1000, places=0),
    gpu_share_percent=_PERCENT,
    hours_per_week=st.decimals(0, 168, places=2),
    spot_percent=_PERCENT,
    spot_discount_percent=_PERCENT,
)


@given(_SCENARIOS)
def test_a_scenario_never_costs_less_than_nothing_or_more_than_all_of_it(
    scenario: Scenario,
) -> None:
    lines = list(what_if.lines_of(scenario))

    assert all(line.amount >= 0 for line in lines)
    # Only replicas can raise a line.
    amounts = [line.amount for line in lines[1:]]
    assert amounts == sorted(amounts, reverse=True)


@given(_SCENARIOS)
def test_the_same_twice_saves_nothing(scenario: Scenario) -> None:
    result = what_if.compare(scenario, scenario)

    assert result.saved_year_amount == 0
    assert result.saved_percent in (None, 0)


@pytest.mark.django_db
def test_the_page_starts_with_a_deployment_and_refuses_nonsense(
    world: World, client: Client
) -> None:
    world.serving(min_replicas=2, max_replicas=2)
    client.force_login(world.member)

    started = client.get("/what-if?deployment=vision/detector")
    case = client.get("/what-if?case=a")
    query = {
        **{f"now-{name}": value for name, value in _FIELDS.items()},
        **{f"then-{name}": value for name, value in {**_FIELDS, "hours": "84"}.items()},
    }
    half = client.get("/what-if", query)
    refused = client.get("/what-if", {**query, "then-hours": "169"})
    huge = client.get("/what-if", {**query, "then-price": "9" * 400})
    foreign = client.get("/what-if?deployment=nlp/other")

    assert "$1,468.76" in page(started).text
    assert "57.8%" in page(case).text
    assert 'value="100"' in case.content.decode()
    assert "$367.19" in page(half).text
    assert (started.status_code, half.status_code) == (200, 200)
    assert (refused.status_code, huge.status_code, foreign.status_code) == (422, 422, 404)


_FIELDS = {
    "price": "1.006",
    "replicas": "1",
    "share": "100",
    "hours": "168",
    "spot": "0",
    "discount": "0",
}
