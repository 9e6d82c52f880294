"""Wrong input, told per field. Services turn it into the portal's Invalid."""

from __future__ import annotations

from collections.abc import Mapping


class Rejected(ValueError):
    """`fields` maps a field to what is wrong with it and how to mend it."""

    def __init__(self, message: str, fields: Mapping[str, str]) -> None:
        super().__init__(message)
        self.message = message
        self.fields = dict(fields)
