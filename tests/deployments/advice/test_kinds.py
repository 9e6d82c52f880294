"""What each kind of advice says of typed facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from deployments.advice.domain import catalogue
from deployments.advice.domain.facts import Hour, NodeFacts, SpotPrice
from deployments.advice.domain.kinds import quiet_hours
from deployments.advice.domain.kinds.quiet_hours import Window
from deployments.sizing.domain.ranking import ShareKind
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.advice.known_facts import (
    MIG,
    PRICE,
    START,
    facts_of,
    hours_of,
    kinds_of,
    offer,
)


def test_a_mig_slice_that_holds_the_model_and_its_busiest_hour() -> None:
    saving = kinds_of(facts_of(hours_of(busy=0.2), offers=(MIG,)))["mig-slice"]

    assert saving.saving_amount == ((PRICE - Decimal("0.5")) * 730).quantize(Decimal("0.01"))
    assert saving.proposal is not None
    assert saving.proposal.settings["gpu_resource"] == "nvidia.com/mig-3g.20gb"


@pytest.mark.parametrize(
    ("mib", "busy"),
    [
        pytest.param(21000, 0.2, id="the model does not fit"),
        # 31% of a GPU is 72% of three of its seven compute slices.
        pytest.param(8000, 0.31, id="the busiest hour does not fit"),
    ],
)
def test_no_slice_that_is_too_small(mib: int, busy: float) -> None:
    assert "mig-slice" not in kinds_of(facts_of(hours_of(busy=busy), offers=(MIG,), mib=mib))


def test_a_cheaper_instance_of_the_ranking() -> None:
    t4 = offer(ShareKind.WHOLE, instance_type="g4dn.xlarge", gpu_name="T4", memory_mib=16384)
    saving = kinds_of(facts_of(hours_of(), offers=(t4,)))["cheaper-instance"]

    assert saving.message.startswith("Run on 1 \N{MULTIPLICATION SIGN} T4 (g4dn.xlarge)")
    assert "cheaper-instance" not in kinds_of(facts_of(hours_of(busy=0.5), offers=(t4,)))
    taken = replace(t4, free_replicas=0)
    assert "cheaper-instance" not in kinds_of(facts_of(hours_of(), offers=(taken,)))


def test_spot_for_what_tolerates_it() -> None:
    spot = SpotPrice(usd_per_hour_amount=Decimal("0.4"), source="AWS")

    two = kinds_of(facts_of(hours_of(busy=0.9, replicas=2), replicas=2, spot=spot))["spot"]
    assert two.saving_amount == (Decimal("0.606") * 2 * 730).quantize(Decimal("0.01"))
    assert two.proposal is not None
    assert two.proposal.settings["placement"]["capacity"] == "spot"
    alone = facts_of(hours_of(busy=0.9), spot=spot)
    assert "spot" not in kinds_of(alone), "one replica of production"
    assert "spot" in kinds_of(replace(alone, is_production=False))


def _office(at: datetime) -> int:
    return 50 if at.weekday() < 5 and 8 <= at.hour < 18 else 0


def test_office_hours_from_the_hours_without_requests() -> None:
    facts = facts_of(hours_of(requests=_office), supports={"keda": True})
    saving = kinds_of(facts)["office-hours"]

    assert saving.message == (
        "Run from 08:00 to 18:00 UTC, Monday to Friday: no request came at another time in 2 weeks."
    )
    # 50 of 168 hours stay.
    assert saving.saving_amount == (PRICE * 730 * 118 / 168).quantize(Decimal("0.01"))
    assert saving.proposal is not None
    hours = saving.proposal.settings["scaling"]["office_hours"]
    assert (hours["start"], hours["end"], hours["days"]) == ("08:00", "18:00", "1-5")
    ServingSpec.from_json({**facts.spec.to_json(), **saving.proposal.settings})


def test_one_request_at_night_widens_the_window_and_a_gap_counts_as_used() -> None:
    hours = hours_of(requests=_office)
    night = next(
        i for i, hour in enumerate(hours) if hour.start.weekday() == 5 and hour.start.hour == 3
    )
    for changed in (replace(hours[night], requests=1), replace(hours[night], observed_ms=0)):
        known = [*hours[:night], changed, *hours[night + 1 :]]
        saving = kinds_of(facts_of(known, supports={"keda": True}))["office-hours"]
        assert "from 03:00 to 18:00 UTC, Mon, Tue, Wed, Thu, Fri, Sat" in saving.message


def test_no_schedule_up_to_midnight() -> None:
    """Of all day on weekdays, and of the evening: it would start and end at the same time, or a day late."""
    for first in (0, 8):

        def requests(at: datetime, first: int = first) -> int:
            return 50 if at.weekday() < 5 and at.hour >= first else 0

        facts = facts_of(hours_of(requests=requests), supports={"keda": True})
        assert "office-hours" not in kinds_of(facts)


def test_scale_to_zero_states_its_measured_cold_start() -> None:
    supports = {"keda": True, "knative": True, "scale-to-zero": True}
    facts = facts_of(hours_of(requests=_office), supports=supports, cold_start_seconds=90, starts=7)
    saving = kinds_of(facts)["scale-to-zero"]

    assert "waits about 90 s" in saving.message
    assert saving.risk == "high"
    assert "median of 7 starts" in saving.risk_reason
    assert saving.proposal is not None
    spec = ServingSpec.from_json({**facts.spec.to_json(), **saving.proposal.settings})
    assert (spec.scaling.kind, spec.floor_replicas) == ("knative", 0)
    assert "scale-to-zero" not in kinds_of(replace(facts, cold_start_seconds=None)), "not measured"


def test_an_idle_deployment_has_that_advice_only() -> None:
    facts = facts_of(hours_of(requests=lambda _: 0), supports={"keda": True}, offers=(MIG,))

    assert list(kinds_of(facts)) == ["idle"]


@pytest.mark.parametrize(
    ("used", "window"),
    [([(0, 23)], Window(23, 24, (0,))), ([(6, 0), (6, 5)], Window(0, 6, (6,))), ([], None)],
)
def test_the_smallest_window(used: list[tuple[int, int]], window: Window | None) -> None:
    hours = [
        Hour(start=START + timedelta(days=day, hours=hour), cost_amount=PRICE, requests=1)
        for day, hour in used
    ]

    assert quiet_hours.smallest_window(hours) == window


def test_a_node_that_a_pod_held_for_one_hour_is_used() -> None:
    node = NodeFacts(
        name="node-3",
        cluster="eks",
        instance_type="g5.xlarge",
        capacity_type="on-demand",
        gpus=1,
        usd_per_hour_amount=PRICE,
        idle_hours=168,
        held_hours=0,
    )

    assert dict(catalogue.advise_node(node))["unused-node"].saving_amount == Decimal("734.38")
    for changed in ({"held_hours": 1}, {"idle_hours": 167}, {"usd_per_hour_amount": None}):
        assert not dict(catalogue.advise_node(replace(node, **changed)))
