"""What an item of advice rests on, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """`value` is text with its unit, as it is shown."""

    name: str
    value: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, str]) -> EvidenceLine:
        return cls(**raw)
