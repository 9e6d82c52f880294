"""Prices read from AWS: a server speaks AWS's two protocols on loopback, so that botocore itself is tested.

Shapes: AWS Price List Query API (JSON 1.1, GetProducts) and Amazon EC2 (query, DescribeSpotPriceHistory).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import tasks
from fleet.gpus.selectors.prices import price_of
from fleet.models import Cluster, ClusterKind, InstancePrice, PriceOrigin
from fleet.prices.domain import aws_prices
from fleet.prices.domain.aws_prices import SpotChange, UnreadableAnswer
from fleet.prices.services import catalogue, refresh
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden
from tests.accounts import make_user

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
START = NOW - timedelta(hours=24)
TODAY = NOW.date()


def product(amount: str = "1.0060000000", *, unit: str = "Hrs") -> str:
    """As GetProducts answers, without the attributes that are not read."""
    dimension = {
        "unit": unit,
        "description": "$1.006 per On Demand Linux g5.xlarge Instance Hour",
        "appliesTo": [],
        "rateCode": "ABC.JRTCKXETXF.6YS6EN2CT7",
        "beginRange": "0",
        "endRange": "Inf",
        "pricePerUnit": {"USD": amount},
    }
    term = {"priceDimensions": {"ABC.JRTCKXETXF.6YS6EN2CT7": dimension}, "sku": "ABC"}
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": {}, "sku": "ABC"},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {"ABC.JRTCKXETXF": term}},
        }
    )


class Aws:
    """What the server answers, and what it was sent."""

    def __init__(self) -> None:
        self.products: dict[str, list[str]] = {"g5.xlarge": [product()]}
        self.spot = [
            ("us-east-1a", START - timedelta(hours=5), "0.40"),
            ("us-east-1a", NOW - timedelta(hours=6), "0.80"),
            ("us-east-1b", START - timedelta(hours=9), "0.60"),
        ]
        self.status = 200
        self.calls: list[tuple[str, Any]] = []

    def products_page(self, body: Mapping[str, Any]) -> tuple[int, bytes]:
        filters = {row["Field"]: row["Value"] for row in body["Filters"]}
        self.calls.append(("GetProducts", filters))
        listed = self.products.get(filters["instanceType"], [])
        # One product on each page: every page is read.
        at = int(body.get("NextToken", "0"))
        page: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": listed[at : at + 1]}
        if at + 1 < len(listed):
            page["NextToken"] = str(at + 1)
        return self.status, json.dumps(page).encode()

    def spot_page(self, form: Mapping[str, list[str]]) -> tuple[int, bytes]:
        self.calls.append(("DescribeSpotPriceHistory", form))
        items = "".join(
            f"<item><instanceType>g5.xlarge</instanceType><availabilityZone>{zone}</availabilityZone>"
            f"<productDescription>Linux/UNIX</productDescription><spotPrice>{price}</spotPrice>"
            f"<timestamp>{at:%Y-%m-%dT%H:%M:%S.000Z}</timestamp></item>"
            for zone, at, price in self.spot
        )
        return self.status, (
            '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken/>"
            "</DescribeSpotPriceHistoryResponse>"
        ).encode()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Aws]:
    answers = Aws()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("X-Amz-Target", "").endswith(".GetProducts"):
                status, content = answers.products_page(json.loads(body))
            else:
                status, content = answers.spot_page(parse_qs(body.decode()))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for name in ("PRICING", "EC2"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(clock, "now", lambda: NOW)
    settings.SLIPWAY_AWS_PRICES = True
    yield answers
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def known(db: None) -> None:
    """One type in the catalogue, and a cluster in AWS."""
    row = {
        "instance_type": "g5.xlarge",
        "region": "us-east-1",
        "usd_per_hour": "1.1",
        "valid_from": "2026-07-01",
        "gpu_name": "a10g",
        "gpu_count": "1",
        "gpu_memory_mib": "22888",
        "vcpu": "4",
        "memory_gib": "16",
    }
    catalogue.load_rows(actor=SYSTEM, rows=[row], origin=PriceOrigin.CATALOGUE)
    make_cluster("eks", ClusterKind.EKS)


def make_cluster(name: str, kind: ClusterKind, region: str = "us-east-1") -> None:
    Cluster.objects.create(
        name=name, kind=kind, region=region, gateway_url="http://127.0.0.1:1", created_at=NOW
    )


def amount(capacity_type: str, *, on: date = TODAY) -> Decimal | None:
    price = price_of(
        instance_type="g5.xlarge", region="us-east-1", capacity_type=capacity_type, on=on
    )
    return price.usd_per_hour_amount if price else None


def test_on_demand_and_spot_prices_are_read_and_keep_their_history(aws: Aws, known: None) -> None:
    refreshed = refresh.refresh(actor=SYSTEM)

    assert refreshed == refresh.Refreshed(new=2, problems=())
    assert amount("on-demand") == Decimal("1.006")
    assert amount("on-demand", on=date(2026, 11, 19)) == Decimal("1.1")
    # Zone a: 18 h at 0.40 and 6 h at 0.80; zone b: 24 h at 0.60.
    assert amount("spot") == Decimal("0.55")
    sent = next(filters for name, filters in aws.calls if name == "GetProducts")
    assert sent == {
        "instanceType": "g5.xlarge",
        "regionCode": "us-east-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    assert AuditEvent.objects.filter(action="prices.refreshed").count() == 1


def test_price_that_did_not_change_adds_no_row(aws: Aws, known: None) -> None:
    refresh.refresh(actor=SYSTEM)
    before = InstancePrice.objects.count()
    aws.calls.clear()

    assert refresh.refresh(actor=SYSTEM).new == 0
    assert InstancePrice.objects.count() == before
    # The spot price of a day is read once, so that its sealed hours all have one.
    assert [name for name, _ in aws.calls] == ["GetProducts"]


def test_price_that_a_person_entered_is_kept(aws: Aws, known: None) -> None:
    row = {"instance_type": "g5.xlarge", "region": "us-east-1", "usd_per_hour": "0.7"}
    catalogue.enter(actor=SYSTEM, row=row | {"valid_from": "2026-11-01", "source": "contract"})

    assert refresh.refresh(actor=SYSTEM).new == 1
    assert amount("on-demand") == Decimal("0.7")
    assert amount("spot") == Decimal("0.55")


def test_refused_region_keeps_its_prices_and_is_named(aws: Aws, known: None) -> None:
    aws.status = 403
    before = InstancePrice.objects.count()

    refreshed = refresh.refresh(actor=SYSTEM)

    assert refreshed.new == 0
    assert [text.split(" failed")[0] for text in refreshed.problems] == [
        "us-east-1: pricing:GetProducts"
    ]
    assert InstancePrice.objects.count() == before


def test_type_with_several_prices_is_named_and_others_are_read(aws: Aws, known: None) -> None:
    aws.products["g5.xlarge"] = [product("1.006"), product("1.106")]

    refreshed = refresh.refresh(actor=SYSTEM)

    assert refreshed.problems == (
        "g5.xlarge in us-east-1: the AWS price list has several prices: $1.006000, $1.106000",
    )
    assert amount("on-demand") == Decimal("1.1")
    assert amount("spot") == Decimal("0.55")


def test_daily_run_reads_prices_only_where_that_is_switched_on(
    aws: Aws, known: None, settings: Any
) -> None:
    settings.SLIPWAY_AWS_PRICES = False
    tasks.refresh_prices()
    assert aws.calls == []

    settings.SLIPWAY_AWS_PRICES = True
    tasks.refresh_prices()
    assert amount("on-demand") == Decimal("1.006")


@pytest.mark.django_db
def test_embedded_cluster_has_no_region_in_aws(aws: Aws) -> None:
    make_cluster("local", ClusterKind.LOCAL)

    with pytest.raises(Conflict, match="No registered cluster is in AWS"):
        refresh.refresh(actor=SYSTEM)
    tasks.refresh_prices()
    assert aws.calls == []


def test_member_cannot_read_prices_from_aws(aws: Aws, known: None) -> None:
    with pytest.raises(Forbidden):
        refresh.refresh(actor=make_user())
    assert aws.calls == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"terms": []}', product("cheap"), '{"terms": {"OnDemand": {"a": {}}}}'],
)
def test_product_that_cannot_be_read_is_not_a_price(text: str) -> None:
    with pytest.raises(UnreadableAnswer):
        aws_prices.on_demand_price([text])


@pytest.mark.parametrize(
    "products", [[], [product("0.0000000000")], [product("9.9", unit="Quantity")]]
)
def test_products_without_an_hourly_price_are_none(products: list[str]) -> None:
    assert aws_prices.on_demand_price(products) is None


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], None),
        # Changes at and after the end do not count.
        ([("a", 24, "9")], None),
        ([("a", -1, "0.5"), ("a", 24, "9")], "0.5"),
        # A zone counts from its first price.
        ([("a", 18, "2")], "2"),
        ([("a", -1, "1"), ("b", 12, "4")], "2"),
        # In any order.
        ([("a", 12, "3"), ("a", -1, "1")], "2"),
    ],
)
def test_mean_is_weighted_by_time(
    changes: list[tuple[str, float, str]], expected: str | None
) -> None:
    rows = [SpotChange(zone, at(hours), Decimal(price)) for zone, hours, price in changes]

    mean = aws_prices.mean_spot_price(rows, start=START, end=NOW)

    assert mean == (None if expected is None else Decimal(expected))


HOURS = st.floats(min_value=-30, max_value=23, allow_nan=False)
PRICES = st.decimals(min_value="0.000001", max_value="99", places=6)


@given(st.lists(st.tuples(st.sampled_from("abc"), HOURS, PRICES), min_size=1))
def test_mean_lies_between_the_lowest_and_the_highest(
    changes: list[tuple[str, float, Decimal]],
) -> None:
    rows = [SpotChange(zone, at(hours), price) for zone, hours, price in changes]

    mean = aws_prices.mean_spot_price(rows, start=START, end=NOW)

    assert mean is not None
    amounts = [row.usd_per_hour_amount for row in rows]
    assert min(amounts) <= mean <= max(amounts)
