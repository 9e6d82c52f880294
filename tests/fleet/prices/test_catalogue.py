from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from fleet.gpus.selectors.prices import book, price_of
from fleet.models import InstancePrice, Node
from fleet.prices.services import catalogue as prices
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid, NotFound
from tests.accounts import make_user
from tests.fleet.one_node import node

__all__ = ["node"]
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

    assert (first.prices, first.new, first.unpriced) == (68, 68, ("p5e.48xlarge",))
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


OWN = {
    "instance_type": "NVIDIA-L40S",
    "region": "on-site",
    "capacity_type": "own",
    "usd_per_hour": "3.2",
    "gpu_name": "l40s",
    "gpu_count": "4",
    "gpu_memory_mib": "46068",
    "vcpu": "64",
    "memory_gib": "512",
    "valid_from": "2026-11-01",
}


def test_known_type_needs_no_hardware() -> None:
    prices.load_rows(actor=SYSTEM, rows=[ROW])
    entered = {"instance_type": "g5.xlarge", "region": "eu-west-1", "usd_per_hour": "0.9"}

    prices.enter(actor=SYSTEM, row=entered | {"capacity_type": "savings-plan"})

    row = InstancePrice.objects.get(region="eu-west-1")
    assert (row.gpu_name, row.gpu_count, row.allocatable_cpu) == ("a10g", 1, "3920m")
    assert (row.capacity_type, row.origin, row.source) == (
        "savings-plan",
        "person",
        "entered by hand",
    )


def test_type_of_a_running_node_needs_no_hardware(node: Node) -> None:
    node.instance_type, node.gpu_memory_mib = "odd.4xlarge", 23028
    node.allocatable = {"cpu": "47810m", "memory": "187904819Ki"}
    node.save()

    prices.enter(
        actor=SYSTEM,
        row={"instance_type": "odd.4xlarge", "region": "us-east-1", "usd_per_hour": "4"},
    )

    row = InstancePrice.objects.get(instance_type="odd.4xlarge")
    assert (row.gpu_name, row.gpu_count, row.gpu_memory_mib) == ("A10G", 4, 23028)
    assert (row.vcpu, row.memory_gib, row.allocatable_cpu) == (47, 179, "47810m")


def test_unknown_type_without_hardware_is_refused_by_field() -> None:
    with pytest.raises(Invalid) as refused:
        prices.enter(
            actor=SYSTEM,
            row={"instance_type": "g99.huge", "region": "us-east-1", "usd_per_hour": "4"},
        )

    assert refused.value.fields == {
        "instance_type": "g99.huge is unknown. Enter its GPUs and memory too."
    }
    assert not InstancePrice.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("usd_per_hour", "0"),
        ("usd_per_hour", "1e9"),
        ("usd_per_hour", "0.0000001"),
        ("region", "us east"),
        ("instance_type", "<b>"),
        ("instance_type", "x" * 41),
        ("capacity_type", "free"),
        ("valid_from", "9999-12-31"),
        ("gpu_count", "1.5"),
        ("gpu_count", "99999999999"),
        ("is_mig_capable", "maybe"),
    ],
)
def test_value_that_cannot_be_is_refused_at_its_field(column: str, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        prices.enter(actor=SYSTEM, row=ROW | {column: text})

    assert list(refused.value.fields) == [column]
    assert not InstancePrice.objects.exists()


def test_price_of_a_day_is_replaced_and_both_are_in_the_audit_trail() -> None:
    prices.enter(actor=SYSTEM, row=ROW)
    prices.enter(actor=SYSTEM, row=ROW | {"usd_per_hour": "1.2"})

    assert amount_on(date(2026, 11, 1)) == Decimal("1.2")
    changed = AuditEvent.objects.order_by("pk").last()
    assert changed is not None
    assert changed.before == {"usd_per_hour": "1.100000"}
    assert changed.after == {"usd_per_hour": "1.200000", "source": "our contract"}


def test_removed_price_is_gone_and_removing_it_again_says_so() -> None:
    prices.enter(actor=SYSTEM, row=ROW)
    price = InstancePrice.objects.get()

    assert prices.remove(actor=SYSTEM, price_id=price.pk) == "g5.xlarge"
    assert amount_on(date(2026, 11, 1)) is None
    with pytest.raises(NotFound):
        prices.remove(actor=SYSTEM, price_id=price.pk)


def test_own_hardware_is_priced_by_gpu(node: Node) -> None:
    prices.enter(actor=SYSTEM, row=OWN)
    node.instance_type, node.region, node.capacity_type = "NVIDIA-L40S", "on-site", "own"

    prices_by_gpus = {}
    for gpus in (1, 4, 8):
        node.gpu_count = gpus
        price = book(["NVIDIA-L40S"]).find_node_price(node, date(2026, 11, 20))
        assert price is not None
        prices_by_gpus[gpus] = price.usd_per_hour_amount

    assert prices_by_gpus == {1: Decimal("0.8"), 4: Decimal("3.2"), 8: Decimal("6.4")}


def test_rented_node_costs_what_its_type_costs_whatever_its_gpus(node: Node) -> None:
    node.gpu_count = 2

    price = book(["g5.12xlarge"]).find_node_price(node, date(2026, 11, 20))

    assert price is not None
    assert price.usd_per_hour_amount == Decimal("5.672")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "The columns instance_type, region, usd_per_hour are missing"),
        (b"instance_type,region\na,b\n", "The column usd_per_hour is missing"),
        (b"Instance_Type, Region,price\na,b,1\n", "The column usd_per_hour is missing"),
        (b"instance_type,region,usd_per_hour\ng5.xlarge,eu-west-1,1,20\n", "Line 2 has more cells"),
        (b"instance_type;region;usd_per_hour\na;b;1\n", "separated by semicolons"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"instance_type,region,usd_per_hour\ng5.xlarge,us-east-1,1\n", "Line 2, instance_type"),
        (b"x" * (2**20 + 1), "more than 1 MiB"),
        (b'instance_type,region,usd_per_hour\n"' + b"a" * 200_000, "The file is not CSV"),
        (b'instance_type,region,usd_per_hour\n"a,b,1\n', "The file is not CSV"),
    ],
)
def test_file_that_cannot_be_read_is_refused_and_nothing_is_loaded(
    content: bytes, problem: str
) -> None:
    with pytest.raises(Invalid, match=problem):
        prices.load_bytes(actor=SYSTEM, content=content)

    assert not InstancePrice.objects.exists()


def test_file_of_a_spreadsheet_begins_with_a_byte_order_mark() -> None:
    header, line = ",".join(ROW), ",".join(ROW.values())

    loaded = prices.load_bytes(actor=SYSTEM, content=f"\ufeff{header}\r\n{line}\r\n".encode())

    assert (loaded.prices, loaded.new) == (1, 1)
    assert amount_on(date(2026, 11, 1)) == Decimal("1.1")


def test_two_prices_of_one_day_in_a_file_are_refused() -> None:
    header = ",".join(ROW)
    lines = [",".join(row.values()) for row in (ROW, ROW, ROW | {"usd_per_hour": "1.2"})]

    with pytest.raises(Invalid, match=r"Line 4: Another price of .* is listed before it"):
        prices.load_text(actor=SYSTEM, text="\n".join([header, *lines]))
    assert not InstancePrice.objects.exists()

    loaded = prices.load_text(actor=SYSTEM, text="\n".join([header.upper(), *lines[:2]]))
    assert (loaded.prices, loaded.new) == (1, 1)


def test_a_day_before_there_were_such_gpus_is_a_typing_error() -> None:
    with pytest.raises(Invalid, match=r"0206-11-01 is before 2000\. Check the year\."):
        prices.enter(actor=SYSTEM, row=ROW | {"valid_from": "0206-11-01"})

    assert not InstancePrice.objects.exists()
