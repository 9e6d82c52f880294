"""What can be done to the fleet by request."""

from __future__ import annotations

from enum import StrEnum


class ActionKind(StrEnum):
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DRAIN = "drain"

    @property
    def verb(self) -> str:
        """For titles: "Drain node-1"."""
        return self.value.replace("_", " ").capitalize()


class TargetKind(StrEnum):
    NODE = "node"
