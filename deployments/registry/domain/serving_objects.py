"""The objects that serving reads, as they were when their digests were compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

_FEW: Final = 3


@dataclass(frozen=True, slots=True)
class ServingObject:
    """`sha256` is empty of one that was only listed, not read."""

    key: str
    version_id: str
    etag: str
    size_bytes: int
    sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def _identity(self) -> tuple[str, str, int]:
        return (self.version_id, self.etag, self.size_bytes)

    def is_same(self, other: ServingObject) -> bool:
        return self._identity == other._identity


def from_json(rows: Iterable[Mapping[str, Any]]) -> tuple[ServingObject, ...]:
    return tuple(ServingObject(**row) for row in rows)


def differences(recorded: Sequence[ServingObject], live: Iterable[ServingObject]) -> list[str]:
    """In words; empty when what serving would read now is exactly what was recorded."""
    now = {one.key: one for one in live}
    found = []
    for one in recorded:
        there = now.pop(one.key, None)
        if there is None:
            found.append(f"{one.key} was deleted")
        elif not one.is_same(there):
            found.append(f"{one.key} was overwritten")
    return [*found, *(f"{key} was added" for key in sorted(now))]


def describe_differences(found: Sequence[str]) -> str:
    """For example "a/b was overwritten, a/c was added and 2 more"."""
    more = len(found) - _FEW
    told = ", ".join(found[:_FEW])
    return f"{told} and {more} more" if more > 0 else told
