"""What a benchmark ends with: one JSON line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """`value` may be at most `bound`, in `unit`."""

    name: str
    value: float
    bound: float
    unit: str

    @property
    def ok(self) -> bool:
        return self.value <= self.bound

    def to_line(self) -> str:
        return json.dumps({**asdict(self), "ok": self.ok})
