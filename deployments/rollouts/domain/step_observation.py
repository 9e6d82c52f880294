"""The figures of the present step of a rollout: what `Rollout.observed` stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class ObservedSplit:
    """The candidate's part of the requests, 0 to 1, and the range that chance explains.

    Of a shadow: mirrored requests for each request that stable answered.
    """

    observed: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class StepObservation:
    """The observed state of a step. None means not known. `reason` says why the step can or cannot be promoted,
    `stale_metrics` since when there are no new numbers; empty while there are. `warming` says until when
    pods of the candidate are not judged by their times.
    """

    weight: int | None = None
    mirror: int | None = None
    stable_requests: int | None = None
    candidate_requests: int | None = None
    split: ObservedSplit | None = None
    is_promotable: bool = False
    # Whether the step was, when it was promoted: during the watch, and while the candidate grows.
    was_promotable: bool = False
    reason: str = ""
    stale_metrics: str = ""
    warming: str = ""

    @property
    def has_passed(self) -> bool:
        return self.is_promotable or self.was_promotable

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        split = stored.get("split")
        return cls(**{**stored, "split": ObservedSplit(**split) if split else None})
