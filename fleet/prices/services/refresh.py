"""Read on-demand and spot prices from AWS, for the instance types of the catalogue in the clusters' regions.

A price that did not change adds no row. One that a person entered is kept: a contract beats a list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from django.conf import settings
from django.db import transaction

from fleet.gpus.domain.capacity_types import ON_DEMAND, SPOT
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook, PriceKey
from fleet.models import Cluster, ClusterKind, InstancePrice, PriceOrigin
from fleet.prices.domain import aws_prices
from fleet.prices.domain.aws_prices import UnreadableAnswer
from fleet.prices.domain.price_rows import PriceRow
from fleet.prices.gateways.aws_prices import AwsPrices, AwsUnavailable
from fleet.prices.services.catalogue import add_listed
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict

logger = logging.getLogger(__name__)

REFRESHED = register("prices.refreshed", "read prices from AWS")
# Spot prices move by the hour; the price of a day is their mean over the day before it was read.
_SPOT_SPAN: Final = timedelta(hours=24)
_ON_DEMAND_SOURCE: Final = "AWS price list (Linux, on-demand)"
_SPOT_SOURCE: Final = "AWS spot price history, mean of 24 h over all zones"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result of a refresh. `problems` name what could not be read; the rest was."""

    new: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Region:
    name: str
    role_arn: str


def refresh(*, actor: Actor) -> Refreshed:
    """Raises Conflict where it is switched off or no cluster is in AWS."""
    policy.require_platform_admin(actor)
    if not settings.SLIPWAY_AWS_PRICES:
        raise Conflict("Prices are not read from AWS here. Set SLIPWAY_AWS_PRICES=1 to do so.")
    regions = list_regions()
    if not regions:
        raise Conflict("No registered cluster is in AWS, so there is no region to read prices of.")
    now = clock.now()
    types = sorted(set(InstancePrice.objects.values_list("instance_type", flat=True)))
    book = prices.book(types)
    rows: list[PriceRow] = []
    problems: list[str] = []
    for region in regions:
        # What one region refuses must not keep the others' prices away.
        try:
            rows += _read(region, types, book, now, problems)
        except AwsUnavailable as error:
            logger.warning("prices of %s: %s", region.name, error)
            problems.append(f"{region.name}: {error}")
    return Refreshed(_add(actor, rows, regions), tuple(problems))


@transaction.atomic
def _add(actor: Actor, rows: list[PriceRow], regions: list[Region]) -> int:
    new = add_listed(rows)
    if new:
        trail.record(
            actor=actor,
            action=REFRESHED,
            obj=InstancePrice.objects.latest("pk"),
            label=f"{new} prices",
            after={"regions": [region.name for region in regions]},
        )
    return new


def list_regions() -> list[Region]:
    """List each region in which a cluster other than the embedded one is registered, with one of its clusters."""
    rows = Cluster.objects.exclude(kind=ClusterKind.LOCAL).order_by("region", "pk")
    by_name = {row.region: Region(row.region, row.role_arn) for row in reversed(rows)}
    return [by_name[name] for name in sorted(by_name)]


def _read(
    region: Region, types: list[str], book: PriceBook, now: datetime, problems: list[str]
) -> list[PriceRow]:
    aws = AwsPrices(region.name, region.role_arn)
    today = now.date()
    rows = []
    for name in types:
        key = PriceKey(name, region.name, ON_DEMAND)
        if _is_kept(book, key):
            continue
        try:
            amount = aws_prices.on_demand_price(aws.products(name))
        except UnreadableAnswer as error:
            problems.append(f"{name} in {region.name}: {error}")
            continue
        rows += _new_row(book, key, amount, _ON_DEMAND_SOURCE, today)
    return [*rows, *_spot_rows(aws, region, types, book, now)]


def _spot_rows(
    aws: AwsPrices, region: Region, types: list[str], book: PriceBook, now: datetime
) -> Iterator[PriceRow]:
    today = now.date()
    keys = [PriceKey(name, region.name, SPOT) for name in types]
    # Once a day: sealed hours of a day all have one price.
    due = [key for key in keys if not _is_kept(book, key) and not _is_of(book, key, today)]
    if not due:
        return
    start = now - _SPOT_SPAN
    changes = aws.spot_changes([key.instance_type for key in due], start=start, end=now)
    for key in due:
        mean = aws_prices.mean_spot_price(changes.get(key.instance_type, ()), start=start, end=now)
        yield from _new_row(book, key, mean, _SPOT_SOURCE, today)


def _new_row(
    book: PriceBook, key: PriceKey, amount: Decimal | None, source: str, today: date
) -> list[PriceRow]:
    known = book.on(key, today) if book.has(key) else None
    if amount is None or (known and known.usd_per_hour_amount == amount):
        return []
    return [PriceRow(key.instance_type, key.region, key.capacity_type, amount, today, source)]


def _is_kept(book: PriceBook, key: PriceKey) -> bool:
    """Whether the newest price is one that a person entered."""
    newest = book.on(key, date.max)
    return newest is not None and newest.origin == PriceOrigin.PERSON


def _is_of(book: PriceBook, key: PriceKey, today: date) -> bool:
    newest = book.on(key, today)
    return newest is not None and newest.valid_from == today


def refresh_due() -> None:
    """Refresh on-demand prices at each run, and spot prices once a day. Does nothing if prices are not to be read
    from AWS.
    """
    if settings.SLIPWAY_AWS_PRICES and list_regions():
        refresh(actor=policy.SYSTEM)
