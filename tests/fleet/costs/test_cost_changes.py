"""Why costs changed: parts that sum to the difference, and what the pages say of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain import change_lines
from fleet.costs.domain.cost_changes import (
    ChangeKind,
    CostChange,
    PeriodCost,
    split_difference,
)
from fleet.costs.domain.results import GroupKey
from fleet.costs.selectors import cost_changes, costs
from fleet.models import Node, SealedHour, UnpricedHour
from portal.accounts.models import Team
from tests.fleet.costs.test_pages import HOUR, ledger
from tests.fleet.one_node import NOW, admin, member, nlp, node, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
HOUR_MS = 3_600_000
RANKER, ASR, OCR = (GroupKey("vision", deployment=name) for name in ("ranker", "asr", "ocr"))
IDLE = GroupKey(is_idle=True)

_costs = st.builds(
    PeriodCost,
    st.decimals(-1000, 10**9, places=6),
    st.integers(-HOUR_MS, 10**12),
)
_periods = st.dictionaries(st.sampled_from([RANKER, ASR, OCR, IDLE, GroupKey()]), _costs)


@given(before=_periods, now=_periods)
def test_parts_sum_to_the_difference_to_the_last_digit(
    before: Mapping[GroupKey, PeriodCost], now: Mapping[GroupKey, PeriodCost]
) -> None:
    parts = split_difference(before, now)

    assert sum(part.amount for part in parts) == sum(c.amount for c in now.values()) - sum(
        c.amount for c in before.values()
    )
    assert all(part.amount for part in parts)


@given(before=_periods, now=_periods)
def test_lines_and_causes_sum_to_it_too(
    before: Mapping[GroupKey, PeriodCost], now: Mapping[GroupKey, PeriodCost]
) -> None:
    parts = split_difference(before, now)
    whole = sum(part.amount for part in parts)

    text = change_lines.describe(
        CostChange(NOW - timedelta(days=2), NOW - timedelta(days=1), NOW, parts=tuple(parts))
    )

    assert sum(line.amount for line in text.lines) == whole
    assert sum(cause.amount for cause in text.causes) + text.rest_amount == whole
    assert len(text.lines) <= 8


def cost(amount: str, hours: int) -> PeriodCost:
    return PeriodCost(Decimal(amount), hours * HOUR_MS)


@pytest.mark.parametrize(
    ("before", "now", "parts"),
    [
        (cost("0", 0), cost("22", 11), [("new", "22")]),
        (cost("22", 11), cost("0", 0), [("gone", "-22")]),
        (cost("100", 100), cost("400", 400), [("hours", "300")]),
        (cost("100", 100), cost("90", 100), [("price", "-10")]),
        # Twice the hours at the old price of $1, which are 10 cents dearer now.
        (cost("100", 100), cost("220", 200), [("hours", "100"), ("price", "20")]),
        # Less hours, each at three times the price: both in one sum.
        (cost("100", 100), cost("150", 50), [("price", "100"), ("hours", "-50")]),
        # A third of a cent is in one of the two parts.
        (cost("10", 3), cost("20", 7), [("hours", "13.333333"), ("price", "-3.333333")]),
        # Free hours become paid.
        (cost("0", 10), cost("10", 10), [("price", "10")]),
        (cost("-1", 0), cost("10", 10), [("corrected", "11")]),
        (cost("10", 10), cost("10", 10), []),
    ],
)
def test_hours_count_at_the_old_price_and_the_rest_is_the_price(
    before: PeriodCost, now: PeriodCost, parts: list[tuple[str, str]]
) -> None:
    split = split_difference({RANKER: before}, {RANKER: now})

    assert [(part.kind.value, part.amount) for part in split] == [
        (kind, Decimal(amount)) for kind, amount in parts
    ]


def test_idle_is_one_part() -> None:
    (part,) = split_difference({IDLE: cost("10", 10)}, {IDLE: cost("30", 5)})

    assert (part.kind, part.amount) == (ChangeKind.IDLE, Decimal(20))


def test_the_sentence_has_the_largest_causes_and_the_rest() -> None:
    before = {RANKER: cost("100", 100), OCR: cost("50", 50), IDLE: cost("10", 10)}
    now = {RANKER: cost("490", 400), ASR: cost("22", 11), IDLE: cost("13", 13)}
    parts = tuple(split_difference(before, now))

    text = change_lines.describe(
        CostChange(NOW - timedelta(days=2), NOW - timedelta(days=1), NOW, parts=parts),
        team_slug="vision",
    )

    assert [(cause.amount, cause.text) for cause in text.causes] == [
        (300, "more hours of vision/ranker"),
        (90, "dearer nodes of vision/ranker"),
        (-50, "gone: vision/ocr"),
    ]
    assert text.rest_amount == 25
    assert text.causes[0].url == (
        "/costs/ledger?from=2026-11-19T12%3A30Z&to=2026-11-21T12%3A30Z"
        "&team=vision&holder=vision&deployment=ranker&kind=held"
    )


def test_parts_beyond_the_table_are_one_line() -> None:
    now = {GroupKey("vision", deployment=f"d{n}"): cost(str(n), 1) for n in range(1, 12)}

    text = change_lines.describe(
        CostChange(
            NOW - timedelta(days=2),
            NOW - timedelta(days=1),
            NOW,
            parts=tuple(split_difference({}, now)),
        )
    )

    assert len(text.lines) == 8
    assert (text.lines[-1].name, text.lines[-1].amount) == ("4 smaller parts", Decimal(10))
    assert [cause.text for cause in text.causes] == ["new"]


def charge(amount: str, deployment: str, *, hour: datetime, gpus: int = 1, **names: Any) -> None:
    labels = {"deployment": deployment, "model": deployment, "revision": "1"}
    values = {"team_slug": "vision", "namespace": "vision", "workload_labels": labels}
    ledger(
        "allocated",
        amount,
        hour=hour,
        gpu_milliseconds=gpus * HOUR_MS,
        workload_name=f"{deployment}-r1",
        **(values | names),
    )


@pytest.fixture
def two_days(node: Node, vision: Team, nlp: Team) -> None:
    """A day ago and today: ranker has three times the hours and dearer nodes, ocr is gone, asr is new."""
    yesterday = HOUR - timedelta(days=1)
    for hour in (yesterday, HOUR):
        SealedHour.objects.create(cluster=node.cluster, hour=hour, sealed_at=NOW)
    charge("10.000001", "ranker", hour=yesterday)
    charge("36.5", "ranker", hour=HOUR, gpus=3)
    charge("4", "ocr", hour=yesterday)
    charge("2.2", "asr", hour=HOUR, team_slug="nlp", namespace="nlp")
    ledger("idle", "7", hour=yesterday)
    ledger("idle", "5", hour=HOUR)
    Node.objects.filter(pk=node.pk).update(gone_at=NOW - timedelta(days=30))


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock", "two_days")
class TestPages:
    def test_parts_of_the_ledger_sum_to_the_change_of_the_table(self) -> None:
        start = NOW - timedelta(hours=23)
        change = cost_changes.explain(team_slugs=None, start=start, end=NOW, has_idle=True)
        table = costs.table(team_slugs=None, start=start, end=NOW)

        assert table.previous_total_amount == change.before_amount == Decimal("21.000001")
        assert table.total_amount == change.now_amount == Decimal("43.7")
        assert [(part.key.label, part.kind, part.amount) for part in change.parts] == [
            ("vision/ranker", "hours", Decimal("20.000002")),
            ("vision/ranker", "price", Decimal("6.499997")),
            ("vision/ocr", "gone", Decimal(-4)),
            ("nlp/asr", "new", Decimal("2.2")),
            ("idle", "idle", Decimal(-2)),
        ]
        assert sum(part.amount for part in change.parts) == change.difference_amount

    def test_groups_beyond_the_named_are_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cost_changes, "NAMED", 1)

        change = cost_changes.explain(team_slugs=None, start=NOW - timedelta(hours=23), end=NOW)

        assert [(part.key.label, part.kind, part.amount) for part in change.parts] == [
            ("vision/ranker", "hours", Decimal("20.000002")),
            ("vision/ranker", "price", Decimal("6.499997")),
            ("others", "price", Decimal("-1.8")),
        ]

    def test_what_only_one_period_ranks_is_read_of_the_other(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cost_changes, "NAMED", 1)
        charge("30", "ocr", hour=HOUR - timedelta(days=1, hours=1))

        change = cost_changes.explain(
            team_slugs=["vision"], start=NOW - timedelta(hours=23), end=NOW
        )

        assert {(part.key.label, part.kind) for part in change.parts} == {
            ("vision/ranker", "hours"),
            ("vision/ranker", "price"),
            ("vision/ocr", "gone"),
        }
        assert sum(part.amount for part in change.parts) == Decimal("-7.500001")

    def test_the_page_says_why_and_leads_to_the_rows(self, admin: Client) -> None:
        shown = page(admin.get("/costs?range=24h"))

        assert (
            "Costs rose by $23: $20 more hours of vision/ranker, $6.50 dearer nodes of vision/ranker, "
            "\N{MINUS SIGN}$4.00 gone: vision/ocr and $0.20 in smaller parts." in shown.text
        )
        rows = page(admin.get(shown.links["$20 more hours of vision/ranker"])).rows
        assert [(row[""], row["Cost"]) for row in rows] == [
            ("21 Nov 2026 09:00", "$36"),
            ("20 Nov 2026 09:00", "$10"),
        ]

    def test_hidden_idle_is_no_part(self, admin: Client) -> None:
        shown = page(admin.get("/costs?range=24h&idle=hidden"))

        assert "less idle" not in shown.text
        assert "Costs rose by $25" in shown.text

    def test_a_member_reads_of_their_team_alone(self, member: Client) -> None:
        shown = page(member.get("/costs?range=24h"))

        assert "Costs rose by $22" in shown.text
        assert "asr" not in shown.text
        assert "idle" not in shown.part("why").text

    def test_a_missing_price_compares_nothing(self, admin: Client, node: Node) -> None:
        UnpricedHour.objects.create(node=node, hour=HOUR)

        shown = page(admin.get("/costs?range=24h"))

        assert "Why costs changed" not in shown.text
        assert "Not compared: a price is missing" in shown.term("Spent")

    def test_without_earlier_data_nothing_is_explained(self, admin: Client) -> None:
        shown = page(admin.get("/costs?range=7d"))

        assert "Why costs changed" not in shown.text
        assert shown.term("Spent").endswith("No earlier data")

    def test_a_ledger_that_begins_in_the_period_before_says_so(self, admin: Client) -> None:
        shown = page(admin.get("/costs?range=24h"))

        assert "The ledger begins on 20 Nov" in shown.part("why").text
