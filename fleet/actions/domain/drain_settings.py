"""The settings of a drain, as requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final

FEWEST_MINUTES: Final = 5
MOST_MINUTES: Final = 24 * 60
DEFAULT_MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """The settings of a drain. `deadline_minutes` counts from its start. `evict_unmanaged` also evicts pods that no
    controller would start elsewhere.
    """

    deadline_minutes: int = DEFAULT_MINUTES
    evict_unmanaged: bool = False

    @property
    def time_limit(self) -> timedelta:
        return timedelta(minutes=self.deadline_minutes)

    def problems(self) -> dict[str, str]:
        if FEWEST_MINUTES <= self.deadline_minutes <= MOST_MINUTES:
            return {}
        return {"deadline_minutes": f"use {FEWEST_MINUTES} to {MOST_MINUTES} minutes"}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> DrainSettings:
        return cls(
            int(raw.get("deadline_minutes", DEFAULT_MINUTES)),
            bool(raw.get("evict_unmanaged", False)),
        )
