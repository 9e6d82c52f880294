"""Aliases that rollouts moved, and where they point again after going back over several rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AliasMove:
    """The move of an alias between versions, by their ids. `before` is None where the alias was made. The model
    of `Rollout.alias_moves`.
    """

    model_id: int
    name: str
    before: int | None
    after: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AliasMove:
        return cls(data["model"], data["name"], data["before"], data["after"])

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model_id,
            "name": self.name,
            "before": self.before,
            "after": self.after,
        }


def combine(newest_first: Iterable[AliasMove]) -> list[AliasMove]:
    """Combine moves to one for each alias, from before the oldest to after the newest. Moves that end where
    they began are left out.
    """
    combined: dict[tuple[int, str], AliasMove] = {}
    for move in newest_first:
        key = (move.model_id, move.name)
        after = combined[key].after if key in combined else move.after
        combined[key] = AliasMove(move.model_id, move.name, move.before, after)
    return [move for move in combined.values() if move.before != move.after]
