"""The monthly cost with another price, replicas, schedule or share of spot: one line after another.

Pure arithmetic on what the form states; no traffic, no forecast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from deployments.advice.domain.advice import MONTHS_PER_YEAR, dollars, rate
from deployments.advice.domain.facts import WEEK_HOURS
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH
from portal.core.definitions.counts import format_count

_HUNDRED: Final = Decimal(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The inputs of one side of a what-if. `gpu_share_percent` is the part of the instance that one replica pays
    for.

    `spot_percent` of the hours that run are on spot nodes, `spot_discount_percent` cheaper than on-demand.
    """

    usd_per_hour_amount: Decimal
    replicas: Decimal = Decimal(1)
    gpu_share_percent: Decimal = _HUNDRED
    hours_per_week: Decimal = Decimal(WEEK_HOURS)
    spot_percent: Decimal = Decimal(0)
    spot_discount_percent: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Line:
    """A step of the calculation. `amount` is the dollars per month after it."""

    title: str
    formula: str
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioComparison:
    now: tuple[Line, ...]
    then: tuple[Line, ...]

    @property
    def now_month_amount(self) -> Decimal:
        return self.now[-1].amount

    @property
    def then_month_amount(self) -> Decimal:
        return self.then[-1].amount

    @property
    def saved_month_amount(self) -> Decimal:
        return self.now_month_amount - self.then_month_amount

    @property
    def saved_year_amount(self) -> Decimal:
        return self.saved_month_amount * MONTHS_PER_YEAR

    @property
    def is_dearer(self) -> bool:
        return self.saved_month_amount < 0

    @property
    def year_difference_amount(self) -> Decimal:
        """The absolute difference per year. `is_dearer` tells its direction."""
        return abs(self.saved_year_amount)

    @property
    def percent_difference(self) -> Decimal | None:
        return None if self.saved_percent is None else abs(self.saved_percent)

    @property
    def saved_percent(self) -> Decimal | None:
        """The saving in percent of today's monthly cost, to one decimal. None if nothing is paid now."""
        if not self.now_month_amount:
            return None
        return (self.saved_month_amount * _HUNDRED / self.now_month_amount).quantize(
            Decimal("0.1"), rounding=ROUND_HALF_EVEN
        )


def compare(now: Scenario, then: Scenario) -> ScenarioComparison:
    return ScenarioComparison(now=tuple(lines_of(now)), then=tuple(lines_of(then)))


def lines_of(scenario: Scenario) -> Iterator[Line]:
    """Yield the calculation line by line. Each line multiplies the one before; the last is the monthly cost.
    Rounded for display only.
    """
    amount = scenario.usd_per_hour_amount * HOURS_PER_MONTH
    yield _line(
        "Price",
        f"{rate(scenario.usd_per_hour_amount)} \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h",
        amount,
    )
    amount *= scenario.replicas
    yield _line("Replicas", f"\N{MULTIPLICATION SIGN} {_number(scenario.replicas)}", amount)
    amount *= scenario.gpu_share_percent / _HUNDRED
    yield _line(
        "Share of the instance",
        f"\N{MULTIPLICATION SIGN} {_number(scenario.gpu_share_percent)}% of it",
        amount,
    )
    amount *= scenario.hours_per_week / WEEK_HOURS
    yield _line(
        "Schedule",
        f"\N{MULTIPLICATION SIGN} {_number(scenario.hours_per_week)} of {WEEK_HOURS} hours a week",
        amount,
    )
    spot, discount = scenario.spot_percent, scenario.spot_discount_percent
    amount *= 1 - spot * discount / (_HUNDRED * _HUNDRED)
    yield _line(
        "Spot",
        f"{_number(spot)}% of the hours, {_number(discount)}% lower",
        amount,
    )


def _line(title: str, formula: str, amount: Decimal) -> Line:
    return Line(title, formula, amount.quantize(CENT))


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCase:
    """A saving that was published, and what its own figures give."""

    code: str
    title: str
    claim: str
    now: Scenario
    then: Scenario
    remarks: tuple[str, ...]


def published_cases() -> tuple[PublishedCase, ...]:
    return (_office_hours_and_spot(), _fleet())


def _office_hours_and_spot() -> PublishedCase:
    """Build the case of office hours on spot nodes: 07:30 to 22:00 on weekdays is 72.5 of 168 hours. The published
    ratio leaves 380 of 900.
    """
    price = Decimal("5.67")
    now = Scenario(usd_per_hour_amount=price)
    then = Scenario(
        usd_per_hour_amount=price,
        hours_per_week=Decimal("72.5"),
        spot_percent=Decimal("3.3"),
        spot_discount_percent=Decimal(65),
    )
    month = (price * HOURS_PER_MONTH).quantize(CENT)
    return PublishedCase(
        code="a",
        title="Office hours, with batch work on spot",
        claim="Published: $380 instead of $900 a month, 58% saved.",
        now=now,
        then=then,
        remarks=(
            "Weekdays from 07:30 to 22:00 are 14.5 h \N{MULTIPLICATION SIGN} 5 = 72.5 of 168 hours: 56.8% saved without spot.",
            "380 of 900 leaves 42.2%. At 65% lower, 3.3% of the running hours on spot make up the rest.",
            f"$5.67/h is {dollars(month)} a month, not $900: $900 would be 159 of {HOURS_PER_MONTH} hours before any "
            "saving. The ratio holds, the dollars do not.",
        ),
    )


def _fleet() -> PublishedCase:
    """Build the case of ten GPUs: three models on one GPU by MIG, one GPU less by scale-down, 30% of the rest on
    spot.
    """
    price = Decimal(1)
    return PublishedCase(
        code="b",
        title="Spot, scale-down below 40% utilisation, and MIG",
        claim="Published: spend cut by 40 to 50%. No dollars are given: each GPU is $1 an hour here.",
        now=Scenario(usd_per_hour_amount=price, replicas=Decimal(10)),
        then=Scenario(
            usd_per_hour_amount=price,
            replicas=Decimal(7),
            spot_percent=Decimal(30),
            spot_discount_percent=Decimal(70),
        ),
        remarks=(
            f"Of {format_count(10, 'GPU')}, three that hold one model size each become one by MIG: 8 are left.",
            "Scale-down below 40% utilisation releases one more: 7 are left, 30% saved.",
            "30% of their hours on spot, 70% lower, save 21% of the rest: 44.7% together.",
            "With 15% on spot it is 37.4%, with 40% it is 49.6%: the range takes about 20 to 40% on spot.",
        ),
    )
