"""Days that depart from what is usual: the rule, and where it is shown."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain import anomalies
from fleet.costs.selectors import anomalies as recent_anomalies
from fleet.models import Cluster, LedgerRow, Node, SealedHour
from portal.accounts.models import Team
from tests.fleet.one_node import NOW, admin, member, nlp, node, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
# A Friday.
DAY = date(2026, 11, 20)
ONE = timedelta(days=1)


def history(*costs: str) -> dict[date, Decimal]:
    """Of the days up to DAY, the last first."""
    return {DAY - n * ONE: Decimal(cost) for n, cost in enumerate(costs)}


@pytest.mark.parametrize(
    ("costs", "usual"),
    [
        (["151", *["100"] * 28], "100"),
        (["49", *["100"] * 28], "100"),
        # A fifth, $10 and three deviations are all exceeded, or it is as usual.
        (["120", *["100"] * 28], None),
        (["120.01", *["100"] * 28], "100"),
        (["15", *["5"] * 28], None),
        (["15.01", *["5"] * 28], "5"),
        # The typical deviation of these is 20 x 1.4826.
        (["185", *["80", "120"] * 14], None),
        (["189", *["80", "120"] * 14], "100"),
        # One odd day does not hide the next.
        (["160", "900", *["100"] * 27], "100"),
        # Too few days.
        (["500", *["100"] * 6], None),
        (["500", *["100"] * 7], "100"),
        (["500"], None),
    ],
)
def test_the_rule(costs: list[str], usual: str | None) -> None:
    anomaly = anomalies.judge(history(*costs), DAY)

    assert (anomaly and anomaly.usual_amount) == (usual and Decimal(usual))
    if anomaly:
        assert (anomaly.amount, anomaly.is_rise) == (
            Decimal(costs[0]),
            Decimal(costs[0]) > 100 or usual == "5",
        )


def test_weekends_without_cost_are_usual_and_work_on_one_is_not() -> None:
    amounts = {
        DAY - n * ONE: Decimal(0 if (DAY - n * ONE).weekday() > 4 else 100) for n in range(-2, 30)
    }
    saturday = DAY + ONE

    assert anomalies.judge(amounts, saturday) is None
    assert anomalies.judge(amounts, DAY) is None
    worked = anomalies.judge(amounts | {saturday: Decimal(100)}, saturday)
    idle_friday = anomalies.judge(amounts | {DAY: Decimal(0)}, DAY)

    # As a weekday, so it is as usual as one.
    assert worked is None
    assert idle_friday is not None
    assert (idle_friday.usual_amount, idle_friday.is_rise) == (100, False)


def test_days_without_cost_count_from_the_first_with_one() -> None:
    amounts = {DAY - 20 * ONE: Decimal(1), DAY: Decimal(50)}

    anomaly = anomalies.judge(amounts, DAY)

    assert anomaly == anomalies.Anomaly(DAY, Decimal(50), Decimal(0))


@given(
    costs=st.lists(st.decimals("0", "1000", places=2), min_size=29, max_size=29),
    others=st.lists(st.tuples(st.integers(29, 90), st.decimals("0", "1000")), max_size=5),
    later=st.decimals("0", "1000"),
)
def test_only_the_28_days_before_count(
    costs: list[Decimal], others: list[tuple[int, Decimal]], later: Decimal
) -> None:
    amounts = {DAY - n * ONE: cost for n, cost in enumerate(costs)}
    more = {DAY - n * ONE: cost for n, cost in others} | {DAY + ONE: later}

    anomaly = anomalies.judge(amounts, DAY)

    assert anomalies.judge(more | amounts, DAY) == anomaly
    if anomaly:
        assert abs(anomaly.amount - anomaly.usual_amount) > anomalies.LEAST_AMOUNT


def spend(
    cluster: Cluster,
    day: date,
    cost: str,
    *,
    deployment: str = "ocr",
    team: str = "vision",
    is_demo: bool = False,
    hour_of_day: int = 5,
) -> None:
    hour = datetime.fromisoformat(f"{day}T0{hour_of_day}:00Z")
    LedgerRow.objects.create(
        hour=hour,
        cluster_name=cluster.name,
        node_uid=f"n-{deployment}",
        node_name="n",
        instance_type="g5.xlarge",
        kind="allocated",
        team_slug=team,
        namespace=team,
        workload_name=f"{deployment}-r1",
        workload_labels={"deployment": deployment, "model": f"{team}/m", "revision": "1"},
        gpu_milliseconds=3_600_000,
        cost_amount=Decimal(cost),
        is_demo=is_demo,
        sealed_at=hour,
    )


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
class TestPage:
    """Today is the 21st: ocr costs $100 a day and cost $400 yesterday; asr fell from $50 to $1 the day before."""

    @pytest.fixture(autouse=True)
    def ledger(self, node: Node, vision: Team, nlp: Team) -> None:
        # SQLite gives the numbers of rows of the test before again.
        cache.clear()
        for n in range(30):
            day = DAY - n * ONE
            spend(node.cluster, day, "400" if n == 0 else "100")
            spend(node.cluster, day, "1" if n == 1 else "50", deployment="asr", team="nlp")
            spend(node.cluster, day, "90" if n == 2 else "9", deployment="demo", is_demo=True)
        Node.objects.all().delete()

    def unusual(self, client: Client, query: str = "") -> list[tuple[str, str, str, str]]:
        shown = page(client.get(f"/costs?group=deployment{query}"))
        return [
            (row["Day"], row["Team or deployment"], row["Day's cost"], row["Median"])
            for row in shown.rows
            if "Median" in row
        ]

    def seal(self, until: str) -> None:
        cluster = Cluster.objects.get()
        hour = datetime.fromisoformat(until) - timedelta(hours=1)
        SealedHour.objects.create(cluster=cluster, hour=hour, sealed_at=NOW)

    def test_a_rise_is_shown_at_once_and_a_fall_when_its_day_is_sealed(self, admin: Client) -> None:
        rise = ("20 Nov", "vision/ocr", "▲ $400", "$100")
        fall = ("19 Nov", "nlp/asr", "▼ $1.00", "$50")

        self.seal("2026-11-19T23:00Z")
        assert self.unusual(admin) == [rise]
        with time_machine.travel(NOW + timedelta(hours=1), tick=False):
            self.seal("2026-11-20T00:00Z")
            assert self.unusual(admin) == [rise, fall]
            assert self.unusual(admin, "&start=2026-11-19&end=2026-11-19") == [fall]

    def test_of_teams_in_the_table_of_teams(self, admin: Client) -> None:
        shown = page(admin.get("/costs"))

        assert [row["Team or deployment"] for row in shown.rows if "Median" in row] == ["vision"]
        assert "median of the 28 days before" in shown.text

    def test_other_teams_stay_hidden(self, member: Client) -> None:
        self.seal("2026-11-21T00:00Z")

        assert [row[1] for row in self.unusual(member)] == ["vision/ocr"]

    def test_rest_has_teams_and_deployments(self, admin: Client, member: Client) -> None:
        self.seal("2026-11-21T00:00Z")

        answer = admin.get("/api/v1/costs/unusual-days?limit=3").json()
        rest = admin.get(answer["next"]).json()["results"]
        own = member.get("/api/v1/costs/unusual-days").json()["results"]

        assert answer["computed_at"] == "2026-11-21T12:30:00Z"
        assert answer["results"][0] == {
            "team_slug": "vision",
            "deployment": "",
            "day": "2026-11-20",
            "amount": "400.000000",
            "usual_amount": "100.000000",
        }
        named = [
            (row["team_slug"], row["deployment"], row["day"]) for row in answer["results"] + rest
        ]
        assert named == [
            ("vision", "", "2026-11-20"),
            ("vision", "ocr", "2026-11-20"),
            ("nlp", "", "2026-11-19"),
            ("nlp", "asr", "2026-11-19"),
        ]
        assert [(row["team_slug"], row["deployment"]) for row in own] == [
            ("vision", ""),
            ("vision", "ocr"),
        ]
        assert len(admin.get("/api/v1/costs/unusual-days?team=nlp").json()["results"]) == 2
        assert member.get("/api/v1/costs/unusual-days?team=nlp").status_code == 404

    def test_it_is_as_of_an_hour_ago_at_most(self, admin: Client) -> None:
        assert len(self.unusual(admin)) == 1
        spend(Cluster.objects.get(), DAY, "900", deployment="asr", team="nlp", hour_of_day=6)

        assert len(self.unusual(admin)) == 1
        with time_machine.travel(NOW + timedelta(hours=1), tick=False):
            assert len(self.unusual(admin)) == 2
            assert recent_anomalies.recent().computed_at == NOW + timedelta(hours=1)
