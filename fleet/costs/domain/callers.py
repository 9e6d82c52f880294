"""Split what a deployment cost among its callers, by what each of them sent in each hour: pure.

A caller bears the part of an hour that its requests were of all requests that the servers answered or, where
that is more, of those that the gateway counted. The rest is attributed to nobody, and says why. The parts of an
hour sum to its cost exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from fleet.costs.domain.ledger import Split
from fleet.gpus.domain.money import CENT

_ZERO = Decimal(0)


class Rest(StrEnum):
    """The reason why no caller bears a cost."""

    # In hours without a request.
    IDLE = "idle"
    # Requests without a key of a caller: an open address, pipelines, golden requests, trials.
    WITHOUT_KEY = "without_key"
    # In hours in which callers were not counted.
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, slots=True)
class Hour:
    """The requests of an hour. `served` counts those that the servers answered; None means unknown. `is_counted`
    means that callers without an entry sent nothing.
    """

    cost_amount: Decimal
    callers: Mapping[str, int]
    served: int | None
    is_counted: bool


@dataclass(frozen=True, slots=True)
class Shares:
    """The weights of an hour: of its callers, and of those who are none."""

    callers: Mapping[str, int]
    rest: Rest
    rest_weight: int


@dataclass(frozen=True, slots=True)
class Bill:
    """The costs of a deployment by caller. `rest` and `callers` sum to the cost of all hours."""

    callers: Mapping[str, Decimal]
    rest: Mapping[Rest, Decimal]

    @property
    def amount(self) -> Decimal:
        return sum(self.callers.values(), _ZERO) + sum(self.rest.values(), _ZERO)


def compute_shares(hour: Hour) -> Shares:
    callers = {name: count for name, count in sorted(hour.callers.items()) if count > 0}
    counted = sum(callers.values())
    if not counted and not hour.is_counted:
        return Shares({}, Rest.NOT_KNOWN, 1)
    others = max(0, (hour.served or 0) - counted)
    if not counted and not others:
        return Shares({}, Rest.IDLE if hour.served is not None else Rest.NOT_KNOWN, 1)
    return Shares(callers, Rest.WITHOUT_KEY, others)


def divide(amount: Decimal, shares: Shares, split: Split) -> tuple[dict[str, Decimal], Decimal]:
    """Return the callers' parts of an amount, and the rest."""
    *parts, rest = split(amount, [*shares.callers.values(), shares.rest_weight])
    return dict(zip(shares.callers, parts, strict=True)), rest


def bill(hours: Iterable[Hour], split: Split) -> Bill:
    callers: dict[str, Decimal] = defaultdict(Decimal)
    rest: dict[Rest, Decimal] = defaultdict(Decimal)
    for hour in hours:
        shares = compute_shares(hour)
        parts, remainder = divide(hour.cost_amount, shares, split)
        for name, part in parts.items():
            callers[name] += part
        if remainder:
            rest[shares.rest] += remainder
    return Bill(dict(callers), dict(rest))


def in_cents(amounts: list[Decimal]) -> list[Decimal]:
    """Round amounts to cents so that they sum to their rounded total."""
    total = sum(amounts, _ZERO).quantize(CENT)
    floors = [amount.quantize(CENT, rounding="ROUND_FLOOR") for amount in amounts]
    missing = int((total - sum(floors, _ZERO)) / CENT)
    by_remainder = sorted(range(len(amounts)), key=lambda i: (floors[i] - amounts[i], i))
    for i in by_remainder[:missing]:
        floors[i] += CENT
    return floors
