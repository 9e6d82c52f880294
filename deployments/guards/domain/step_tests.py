"""The state of a rollout's sequential tests on counters between two readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deployments.guards.domain import counters
from deployments.guards.domain.betting import blocks, lanes
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.lanes import Claim
from deployments.guards.domain.betting.rates import Count, Pair
from deployments.guards.domain.counters import NO_SUMS, Sums


@dataclass(frozen=True, slots=True)
class Side:
    """The counts of both sides in one interval, or in all that a step observed."""

    stable: Sums = NO_SUMS
    candidate: Sums = NO_SUMS

    def __add__(self, other: Side) -> Side:
        return Side(self.stable + other.stable, self.candidate + other.candidate)

    def pair(self, count: Callable[[Sums], Count]) -> Pair:
        return Pair(count(self.stable), count(self.candidate))

    def to_json(self) -> dict[str, Any]:
        return {"stable": self.stable.to_json(), "candidate": self.candidate.to_json()}


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """A block that is not complete yet, or has too few requests for a mean."""

    side: Side = field(default_factory=Side)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {"side": self.side.to_json(), "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class StepTests:
    """The state of the tests at a step. `total` and `split` are of the present step; `split` leaves out what may
    have been sent with the weight before.

    The capital of `claims` is that of the rollout.
    """

    total: Side = field(default_factory=Side)
    split: Side = field(default_factory=Side)
    lengths: BlockLengths = field(default_factory=BlockLengths)
    open: Mapping[str, OpenBlock] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    # Seconds that the readings of this step cover.
    seconds: float = 0.0

    def get_claim(self, name: str) -> Claim:
        return self.claims.get(name, Claim())

    def to_json(self) -> dict[str, Any]:
        return {
            "total": self.total.to_json(),
            "split": self.split.to_json(),
            "lengths": self.lengths.to_json(),
            "open": {name: block.to_json() for name, block in self.open.items()},
            "claims": {name: claim.to_json() for name, claim in self.claims.items()},
            "seconds": self.seconds,
        }


def from_json(stored: Mapping[str, Any]) -> StepTests:
    return StepTests(
        total=_side(stored.get("total", {})),
        split=_side(stored.get("split", {})),
        lengths=blocks.from_json(stored.get("lengths")),
        open={
            name: OpenBlock(_side(block["side"]), block["seconds"])
            for name, block in stored.get("open", {}).items()
        },
        claims={name: lanes.from_json(claim) for name, claim in stored.get("claims", {}).items()},
        seconds=stored.get("seconds", 0.0),
    )


def _side(stored: Mapping[str, Any]) -> Side:
    return Side(
        counters.from_json(stored.get("stable")),
        counters.from_json(stored.get("candidate")),
    )
