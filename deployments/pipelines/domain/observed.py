"""The last observed state of a pipeline, as its row keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GraphCondition:
    """A condition of the graph, or RouterAvailable of its Deployment, in Kubernetes' words."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ObservedPipeline:
    """The observed state of a pipeline. `reverted` is the last drift that was reverted."""

    conditions: tuple[GraphCondition, ...] = ()
    reverted: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ObservedPipeline:
        """Read the column. Before the first observation there are no conditions."""
        if not raw:
            return cls()
        return cls(tuple(GraphCondition(**row) for row in raw["conditions"]), raw["reverted"])
