"""The units of an amount: a month, and a cent."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

HOURS_PER_MONTH: Final = 730
CENT: Final = Decimal("0.01")
