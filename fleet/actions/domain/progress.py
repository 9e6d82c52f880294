"""The progress that a running action stores between passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BlockedPod:
    """A pod that a drain cannot evict yet. `pod` is its namespace and name: "vision/detector-r1-a"."""

    pod: str
    why: str

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an action. `was_schedulable` is what the node was before the first effect, None: it was not
    read yet. `pods` were on it then, `first` is where the next pass over them begins. `judged` is what the agent
    of a labeled node came to.
    """

    was_schedulable: bool | None = None
    pods: int = 0
    remaining: int = 0
    evicted: int = 0
    first: int = 0
    blocked: tuple[BlockedPod, ...] = ()
    is_labeled: bool = False
    judged: str = ""

    @property
    def left(self) -> int:
        """The number of pods that left the node."""
        return self.pods - self.remaining

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Progress:
        blocked = tuple(BlockedPod(**row) for row in raw.get("blocked", ()))
        return cls(**{**raw, "blocked": blocked})
