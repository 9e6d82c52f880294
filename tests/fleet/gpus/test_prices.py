from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from fleet.gpus.selectors.prices import price_of
from fleet.gpus.services import prices
from fleet.models import InstancePrice
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid
from tests.accounts import make_user

pytestmark = pytest.mark.django_db
ROW = {
    "instance_type": "g5.xlarge",
    "region": "us-east-1",
    "capacity_type": "on-demand",
    "vcpu": "4",
    "memory_gib": "16",
    "gpu_name": "a10g",
    "gpu_count": "1",
    "gpu_memory_mib": "22888",
    "is_mig_capable": "no",
    "allocatable_cpu": "3920m",
    "allocatable_memory": "14162Mi",
    "usd_per_hour": "1.1",
    "source": "our contract",
    "valid_from": "2026-11-01",
}


def amount_on(day: date) -> Decimal | None:
    price = price_of(
        instance_type="g5.xlarge", region="us-east-1", capacity_type="on-demand", on=day
    )
    return price.usd_per_hour_amount if price else None


def test_catalogue_loads_once_and_leaves_unknown_prices_out() -> None:
    first = prices.load_catalogue(actor=SYSTEM)
    second = prices.load_catalogue(actor=SYSTEM)

    assert (first.prices, first.new, first.unpriced) == (61, 61, ("p5e.48xlarge",))
    assert second.new == 0
    assert AuditEvent.objects.count() == 1


def test_new_price_is_a_new_row_and_holds_from_its_day() -> None:
    prices.load_catalogue(actor=SYSTEM)
    prices.load_rows(actor=SYSTEM, rows=[ROW])

    assert amount_on(date(2026, 10, 31)) == Decimal("1.006")
    assert amount_on(date(2026, 11, 1)) == Decimal("1.1")
    assert InstancePrice.objects.filter(instance_type="g5.xlarge").count() == 2


def test_day_before_the_first_price_takes_the_first() -> None:
    prices.load_rows(actor=SYSTEM, rows=[ROW])

    assert amount_on(date(2020, 1, 1)) == Decimal("1.1")


def test_unknown_type_has_no_price() -> None:
    assert amount_on(date(2026, 11, 1)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"usd_per_hour": "cheap"},
        {"usd_per_hour": "-1"},
        {"usd_per_hour": "NaN"},
        {"gpu_count": ""},
        {"valid_from": "soon"},
    ],
)
def test_bad_line_is_named_and_nothing_is_loaded(wrong: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="Line 3"):
        prices.load_rows(actor=SYSTEM, rows=[ROW, ROW | wrong])

    assert not InstancePrice.objects.exists()


def test_missing_file_is_named() -> None:
    with pytest.raises(Invalid, match="could not be read"):
        prices.load_catalogue(actor=SYSTEM, path=Path("/absent.csv"))


def test_member_cannot_load_prices() -> None:
    with pytest.raises(Forbidden):
        prices.load_catalogue(actor=make_user())

    assert not InstancePrice.objects.exists()
