"""An item of advice: what to change, why, what it saves and what it risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from deployments.advice.domain.evidence import EvidenceLine
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH

# Less than this a month is not worth a change.
LEAST_SAVING: Final = Decimal(5)
MONTHS_PER_YEAR: Final = 12


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The change that one click requests. `kind` is "scale", "stop" or "canary" (of the same version).

    `settings` are the parts of the spec that change, as in the JSON of a spec. `deployment_id` is the deployment
    that changes; None means the one that the advice is on.
    """

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    deployment_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        other = {} if self.deployment_id is None else {"deployment_id": self.deployment_id}
        return {"kind": self.kind, "settings": dict(self.settings), **other}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The expected saving of a change, with its evidence and risk. `saving_amount` and `cost_amount` are dollars
    per month; `formula` derives the saving.
    """

    message: str
    evidence: Sequence[EvidenceLine]
    cost_amount: Decimal
    saving_amount: Decimal
    formula: str
    risk: Risk
    risk_reason: str
    proposal: Proposal | None

    @property
    def is_worthwhile(self) -> bool:
        return self.saving_amount >= LEAST_SAVING


def per_month(usd_per_hour_amount: Decimal, hours: Decimal | int = HOURS_PER_MONTH) -> Decimal:
    return (usd_per_hour_amount * hours).quantize(CENT)


def limit_saving(amount: Decimal, *, cost: Decimal) -> Decimal:
    """Limit the saving to at least 0 and at most the present cost."""
    return min(max(amount, Decimal(0)), cost).quantize(CENT)


def dollars(amount: Decimal) -> str:
    """Format dollars to the cent, for formulas that a reader adds up."""
    return f"${amount:,.2f}"


def rate(amount: Decimal) -> str:
    """Format dollars per hour with four decimals, for formulas that a reader adds up."""
    return f"${amount:,.4f}/h"
