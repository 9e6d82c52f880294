"""The evidence lines of an item of advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

# The line that says how many of the hours are generated.
DEMO_DATA: Final = "Demo data"


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A named value in the evidence. `value` is text with its unit, as shown."""

    name: str
    value: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, str]) -> EvidenceLine:
        return cls(**raw)
