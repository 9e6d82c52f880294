"""The FOCUS export: any row of any ledger conforms, and nothing is lost or added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain import focus, ledger
from fleet.costs.domain.focus_columns import COLUMNS
from fleet.costs.domain.ledger import Allocation, Holder, NodeLife
from fleet.costs.domain.results import LedgerEntry
from fleet.gpus.domain import capacity_types
from fleet.gpus.domain.intervals import HOUR, HOUR_MS, LeaseInterval
from portal.core.money import split_exactly
from tests.fleet.costs.focus_rules import violations

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
COSTS = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")

holders = st.builds(
    Holder,
    st.sampled_from(["", "vision", "nlp"]),
    st.sampled_from(["vision", "=cmd()"]),
    st.sampled_from(["a", "b", "-c"]),
)
hours = st.integers(0, 24 * 400).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + n * HOUR)
prices = st.none() | st.just(Decimal(0)) | st.decimals("0.000001", "99999999", places=6)


@st.composite
def nodes(draw: st.DrawFn) -> list[LedgerEntry]:
    """The hour of a node that lived for a part of it, as it is sealed, estimated or adjusted later."""
    hour, price, gpus = draw(hours), draw(prices), draw(st.integers(1, 8))
    life = NodeLife(gpus, LeaseInterval(hour - draw(st.timedeltas(-HOUR * 0.9, HOUR))), price)
    held = st.builds(
        Allocation,
        holders,
        st.sampled_from([125_000, 333_333, 1_000_000]),
        st.just(LeaseInterval(hour - HOUR)),
    )
    allocations = draw(st.lists(held, max_size=5))
    parts = ledger.split_hour(life, allocations, hour, split=split_exactly)
    late = draw(st.none() | st.sampled_from([timedelta(hours=2), timedelta(days=40)]))
    known: dict[str, Any] = {
        "hour": hour,
        "cluster_name": draw(st.sampled_from(["local", "eks-1"])),
        "node_name": "n1",
        "node_uid": draw(st.sampled_from(["", "u1"])),
        "instance_type": draw(st.sampled_from(["", "g5.12xlarge", "NVIDIA-L40S"])),
        "region": draw(st.sampled_from(["", "us-east-1", "us-gov-west-1", "on-site"])),
        "capacity_type": draw(st.sampled_from([*capacity_types.LABELS, "flex-start"])),
        "usd_per_hour_amount": price,
        "price_source": "" if price is None else "=list",
        "sealed_at": draw(st.none() | st.just(hour + HOUR)),
    }
    whole = sum(part.gpu_milliseconds for part in parts)
    rows = [_entry(known, part, whole) for part in parts]
    if late is not None and parts:
        sealed_life = draw(st.sampled_from([life, replace(life, usd_per_hour_amount=None)]))
        before = ledger.split_hour(
            sealed_life, draw(st.lists(held, max_size=3)), hour, split=split_exactly
        )
        sums = {part.holder: (part.gpu_milliseconds, part.cost_amount) for part in before}
        moved = ledger.difference(sums, parts)
        sealed = known | {"sealed_at": hour + late, "kind": "adjustment"}
        rows += [_entry(sealed, part, None) for part in moved]
    return rows


def _entry(known: Mapping[str, Any], part: ledger.LedgerPart, whole: int | None) -> LedgerEntry:
    holder = part.holder
    return LedgerEntry(
        **{
            "kind": "allocated" if holder else "idle",
            "team_slug": holder.team_slug if holder else "",
            "namespace": holder.namespace if holder else "",
            "workload_name": holder.workload_name if holder else "",
            "labels": {"model": "m", "revision": ""} if holder else {},
            "gpu_milliseconds": part.gpu_milliseconds,
            "node_gpu_milliseconds": whole,
            "cost_amount": part.cost_amount,
            **known,
        }
    )


def export(entries: Sequence[LedgerEntry]) -> list[dict[str, str]]:
    return [dict(zip(COLUMNS, focus.row(entry), strict=True)) for entry in entries]


def entry(**changed: Any) -> LedgerEntry:
    known: dict[str, Any] = {
        "hour": AT,
        "cluster_name": "eks-1",
        "node_name": "n1",
        "node_uid": "u1",
        "instance_type": "g5.12xlarge",
        "region": "us-east-1",
        "kind": "allocated",
        "team_slug": "vision",
        "namespace": "vision",
        "workload_name": "detector-r1",
        "labels": {"deployment": "detector"},
        "gpu_milliseconds": HOUR_MS,
        "node_gpu_milliseconds": 4 * HOUR_MS,
        "cost_amount": Decimal("1.418000"),
        "usd_per_hour_amount": Decimal("5.672000"),
        "sealed_at": AT + HOUR,
    }
    return LedgerEntry(**(known | changed))


@given(st.lists(nodes(), max_size=4))
def test_rows_of_any_ledger_conform_and_sum_to_it(ledgers: list[list[LedgerEntry]]) -> None:
    entries = [entry for node in ledgers for entry in node]
    rows = export(entries)

    assert violations(rows) == []
    total = sum((entry.cost_amount for entry in entries), Decimal(0))
    assert {sum((Decimal(row[cost]) for row in rows), Decimal(0)) for cost in COSTS} == {total}
    assert sum(int(row["x_GpuMilliseconds"]) for row in rows) == sum(
        entry.gpu_milliseconds for entry in entries
    )


@given(nodes())
def test_ratios_of_a_nodes_hour_sum_to_one(entries: list[LedgerEntry]) -> None:
    ratios = [
        json.loads(row["AllocatedMethodDetails"])["Elements"][0]["AllocatedRatio"]
        for row in export(entries)
        if row["AllocatedMethodDetails"]
    ]

    assert not ratios or sum(ratios) == pytest.approx(1, abs=1e-9)


def test_charge_names_its_node_and_the_allocation_its_holder() -> None:
    held, idle = export([entry(), entry(kind="idle", namespace="", workload_name="", team_slug="")])

    shared = ("ChargeDescription", "ResourceId", "SkuPriceId", "SubAccountId", "Tags")
    assert [held[name] for name in shared] == [idle[name] for name in shared]
    assert held["SkuPriceId"] == "g5.12xlarge/on-demand/us-east-1"
    assert (held["PricingQuantity"], held["PricingUnit"]) == ("0.250000000000000", "Hours")
    assert (held["ConsumedQuantity"], held["ConsumedUnit"]) == ("1.000000", "GPU-Hours")
    assert held["AllocatedResourceId"] == "vision/detector-r1"
    assert json.loads(held["AllocatedTags"]) == {
        "slipway.dev/deployment": "detector",
        "slipway.dev/team": "vision",
    }
    assert (idle["AllocatedMethodId"], idle["AllocatedResourceId"]) == (focus.METHOD, "")


def test_hour_without_a_price_is_an_adjustment_of_nothing_and_says_its_gpu_time() -> None:
    (row,) = export([entry(usd_per_hour_amount=None, cost_amount=Decimal(0))])

    assert (row["ChargeCategory"], row["x_IsPriced"]) == ("Adjustment", "false")
    assert (row["BilledCost"], row["ListUnitPrice"], row["SkuPriceId"]) == ("0", "", "")
    assert row["x_GpuMilliseconds"] == "3600000"


@pytest.mark.parametrize(
    ("sealed_at", "charge_class"),
    [
        (datetime(2026, 11, 30, 23, 59, tzinfo=UTC), ""),
        (datetime(2026, 12, 1, tzinfo=UTC), "Correction"),
    ],
)
def test_only_an_adjustment_of_a_past_month_is_a_correction(
    sealed_at: datetime, charge_class: str
) -> None:
    adjusted, sealed = export(
        [entry(kind="adjustment", sealed_at=sealed_at), entry(sealed_at=sealed_at)]
    )

    assert (adjusted["ChargeCategory"], adjusted["ChargeClass"]) == ("Usage", charge_class)
    assert sealed["ChargeClass"] == ""


@pytest.mark.parametrize(
    ("changed", "provider", "service", "category"),
    [
        ({}, "AWS", "Amazon EC2", "Standard"),
        ({"capacity_type": "spot"}, "AWS", "Amazon EC2", "Dynamic"),
        ({"capacity_type": "own"}, "Slipway", "GPU nodes", "Standard"),
        ({"region": "europe-west4"}, "Slipway", "GPU nodes", "Standard"),
        ({"region": ""}, "Slipway", "GPU nodes", "Standard"),
    ],
)
def test_provider_is_aws_only_where_the_region_is_one_of_aws(
    changed: dict[str, Any], provider: str, service: str, category: str
) -> None:
    (row,) = export([entry(**changed)])

    assert row["ServiceProviderName"] == row["ProviderName"] == provider
    assert (row["ServiceName"], row["PricingCategory"]) == (service, category)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("PricingUnit", "GPU-hours"),
        ("ListUnitPrice", "-1"),
        ("BilledCost", "$1"),
        ("ChargeFrequency", ""),
        ("RegionName", ""),
        ("PricingQuantity", "0.26"),
        ("ChargePeriodEnd", "2026-12-01T01:00:00Z"),
        ("BillingPeriodStart", "2026-11-02T00:00:00Z"),
        ("AllocatedResourceName", ""),
        ("Tags", '{"a": {}}'),
        ("SkuPriceId", ""),
    ],
)
def test_rules_refuse_a_broken_row(column: str, value: str) -> None:
    rows = export([entry()])
    assert violations(rows) == []

    rows[0][column] = value

    assert violations(rows) != []
