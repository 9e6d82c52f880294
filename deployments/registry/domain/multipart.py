"""Split a file into the parts of a multipart upload, within S3's limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MIB: Final = 2**20
DEFAULT_PART_BYTES: Final = 8 * MIB
MAX_PARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class PartPlan:
    """The parts of a file, numbered from 1; all have `part_bytes` except the last, which has the rest. An empty
    file is one empty part.
    """

    size_bytes: int
    part_bytes: int

    @property
    def count(self) -> int:
        return max(1, -(-self.size_bytes // self.part_bytes))

    def bytes_of(self, number: int) -> int:
        """Return the size of a part in bytes. Raises ValueError for a number outside 1..count."""
        if not 1 <= number <= self.count:
            raise ValueError(f"part {number} of {self.count}")
        start = (number - 1) * self.part_bytes
        return min(self.part_bytes, self.size_bytes - start)

    def missing(self, stored: Mapping[int, int]) -> list[int]:
        """Return numbers whose part is absent, or stored with another size than planned."""
        return [n for n in range(1, self.count + 1) if stored.get(n) != self.bytes_of(n)]

    def foreign(self, stored: Mapping[int, int]) -> list[int]:
        """Return stored numbers that the plan does not have."""
        return sorted(n for n in stored if not 1 <= n <= self.count)


def plan(size_bytes: int) -> PartPlan:
    """Plan the parts, in whole MiB: 8 MiB, or larger where the file would need more than 1000 of them."""
    if size_bytes < 0:
        raise ValueError(f"a file of {size_bytes} bytes")
    minimum = -(-size_bytes // MAX_PARTS)
    part_bytes = max(DEFAULT_PART_BYTES, -(-minimum // MIB) * MIB)
    return PartPlan(size_bytes=size_bytes, part_bytes=part_bytes)
