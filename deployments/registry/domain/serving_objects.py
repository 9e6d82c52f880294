"""The objects of the serving repository of a version, as recorded when their digests were verified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

_MAX_LISTED: Final = 3


@dataclass(frozen=True, slots=True)
class ServingObject:
    """A row of the column `laid_out`. `sha256` is empty for an object that was only listed."""

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
    """Describe each change since the objects were recorded; empty if there is none."""
    live_by_key = {current.key: current for current in live}
    changes = []
    for expected in recorded:
        current = live_by_key.pop(expected.key, None)
        if current is None:
            changes.append(f"{expected.key} was deleted")
        elif not expected.is_same(current):
            changes.append(f"{expected.key} was overwritten")
    return [*changes, *(f"{key} was added" for key in sorted(live_by_key))]


def describe_differences(changes: Sequence[str]) -> str:
    """List the changes, for example "a/b was overwritten, a/c was added and 2 more"."""
    more = len(changes) - _MAX_LISTED
    listed = ", ".join(changes[:_MAX_LISTED])
    return f"{listed} and {more} more" if more > 0 else listed
