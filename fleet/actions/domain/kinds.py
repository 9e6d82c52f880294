"""The kinds of fleet actions that can be requested."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ActionKind(StrEnum):
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DRAIN = "drain"
    CHANGE_NODE_POOL = "change_node_pool"
    CREATE_NODE_POOL = "create_node_pool"
    SCALE_NODE_GROUP = "scale_node_group"
    SET_OFFICE_HOURS = "set_office_hours"
    END_OFFICE_HOURS = "end_office_hours"
    SET_MIG_LAYOUT = "set_mig_layout"
    CHANGE_NODE_CLASS = "change_node_class"
    CREATE_NODE_CLASS = "create_node_class"
    SET_GPU_SHARING = "set_gpu_sharing"

    @property
    def verb(self) -> str:
        """The kind as titles show it, such as "Drain" in "Drain node-1"."""
        return (
            self.value.replace("_", " ")
            .capitalize()
            .replace(" mig ", " MIG ")
            .replace(" gpu ", " GPU ")
        )


class TargetKind(StrEnum):
    NODE = "node"
    NODE_POOL = "node pool"
    NODE_GROUP = "node group"
    NODE_CLASS = "node class"


HOURS_KINDS: Final = (ActionKind.SET_OFFICE_HOURS, ActionKind.END_OFFICE_HOURS)
# Those that evict the pods of a node first.
DRAINED_KINDS: Final = (ActionKind.DRAIN, ActionKind.SET_MIG_LAYOUT, ActionKind.SET_GPU_SHARING)
