"""The arithmetic of what-if, with the two published cases followed figure by figure."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from deployments.advice.domain import what_if
from deployments.advice.domain.what_if import Scenario
from deployments.models import Revision
from fleet.models import InstancePrice
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

    assert "$1,469" in page(started).text
    assert "57.8%" in page(case).text
    assert page(case).field("now-share").value == "100"
    assert "$367" in page(half).text
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


def _query(**changed: str) -> dict[str, str]:
    """Both columns as the page sends them; `then_hours="84"` changes one figure."""
    query = {
        f"{prefix}-{name}": value for prefix in ("now", "then") for name, value in _FIELDS.items()
    }
    return query | {name.replace("_", "-"): value for name, value in changed.items()}


@pytest.mark.django_db
def test_an_instance_brings_its_price_and_a_typed_price_stays(world: World, client: Client) -> None:
    client.force_login(world.member)
    row = InstancePrice.objects.get(instance_type="g5.xlarge", capacity_type="on-demand")
    InstancePrice.objects.filter(pk=row.pk).update(usd_per_hour_amount=Decimal("1.1"))
    name = f"g5.xlarge {row.region} on-demand"

    listed = page(client.get("/what-if"))
    chosen = client.get("/what-if", _query(then_instance=name))
    typed = {"then_instance": name, "then_priced": name, "then_price": "0.9"}
    kept = client.get("/what-if", _query(**typed))
    unknown = client.get("/what-if", _query(then_instance="g99.huge"))

    assert name in [option.attributes["value"] for option in listed.all("option")]
    assert "$803" in page(chosen).text
    assert page(chosen).part("id_then-price").attributes["value"] == "1.1"
    assert page(chosen).part("id_then-priced").attributes["value"] == name
    assert "$657" in page(kept).text
    assert unknown.status_code == 422
    assert "No price of it is known. Choose one from the list" in page(unknown).text


@pytest.mark.django_db
def test_a_deployment_without_a_known_price_starts_with_an_example_and_says_so(
    world: World, client: Client
) -> None:
    world.serving(min_replicas=2, max_replicas=2)
    InstancePrice.objects.all().delete()
    client.force_login(world.member)

    shown = page(client.get("/what-if?deployment=vision/detector"))

    assert "The price of g5.xlarge in " in shown.text
    assert "is not known. Enter it below: the figures are an example." in shown.text


@pytest.mark.django_db
def test_office_hours_that_a_deployment_has_are_its_hours_now(world: World, client: Client) -> None:
    deployment = world.serving(min_replicas=2, max_replicas=2)
    hours = {"start": "22:00", "end": "06:30", "days": "1-5", "replicas": 2}
    scaling = {"kind": "keda", "can_scale_to_zero": True, "office_hours": hours}
    revision = deployment.stable_revision
    assert revision is not None
    Revision.objects.filter(pk=revision.pk).update(spec=revision.spec | {"scaling": scaling})
    client.force_login(world.member)

    shown = page(client.get("/what-if?deployment=vision/detector"))

    # 8.5 hours on five days.
    assert shown.part("id_now-hours").attributes["value"] == "42.5"
    assert shown.part("id_now-replicas").attributes["value"] == "2"


@pytest.mark.django_db
def test_a_deployment_that_scales_to_zero_asks_for_its_hours(world: World, client: Client) -> None:
    deployment = world.serving(min_replicas=1, max_replicas=2)
    scaling = {"kind": "knative", "can_scale_to_zero": True}
    revision = deployment.stable_revision
    assert revision is not None
    Revision.objects.filter(pk=revision.pk).update(spec=revision.spec | {"scaling": scaling})
    client.force_login(world.member)

    shown = page(client.get("/what-if?deployment=vision/detector"))

    assert "It scales to zero: enter the hours a week in which it runs." in shown.text
