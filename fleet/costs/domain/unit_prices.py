"""Dollars of 1,000 inferences and of 1,000,000 tokens, and when too few were counted to say so."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from portal.core.definitions.counts import format_count

INFERENCES: Final = 1000
TOKENS: Final = 1_000_000
TOO_FEW: Final = "too few"
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """A price per `unit` things named `noun`, from what was spent on `count` of them."""

    spent_amount: Decimal
    count: int
    unit: int
    noun: str

    @property
    def amount(self) -> Decimal:
        """The price of one unit in dollars, exact also for too few."""
        return (self.spent_amount * self.unit / self.count).quantize(_MICRO)

    @property
    def is_of_too_few(self) -> bool:
        """Whether less than one unit was counted: the price would be that of things that nobody counted."""
        return self.count < self.unit

    @property
    def counted(self) -> str:
        return format_count(self.count, self.noun)

    @property
    def note(self) -> str:
        """The reason why no price is shown, for people. Empty if enough were counted."""
        if not self.is_of_too_few:
            return ""
        return f"{self.counted}: {TOO_FEW} for a price per {self.unit:,}"


def price_inferences(spent_amount: Decimal, count: int | None) -> UnitPrice | None:
    """Return the price per 1,000 inferences. None if none were counted."""
    return UnitPrice(spent_amount, count, INFERENCES, "inference") if count else None


def price_tokens(spent_amount: Decimal, count: int | None) -> UnitPrice | None:
    return UnitPrice(spent_amount, count, TOKENS, "token") if count else None
