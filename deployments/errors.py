"""Wrong input, by field. Services turn it into the portal's Invalid."""

from __future__ import annotations

from portal.core.definitions import Rejected

__all__ = ["Rejected"]
