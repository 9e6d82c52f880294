"""The notices that a cluster gives about a node: that it is taken away, or that one of its GPUs failed.

They are read from taints and conditions, which the node carries itself, and from dcgm-exporter. Warnings that exist
as events only are not seen, such as a spot interruption where nothing taints the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleet.observation.domain.gpu_errors import MEANINGS, GpuError
from fleet.observation.domain.node_health import Condition, Taint


class NoticeKind(StrEnum):
    """A provider takes the node back, something removes it, or a GPU of it is faulty."""

    RECLAIM = "reclaim"
    REMOVAL = "removal"
    GPU_FAULT = "gpu-fault"


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice about a node. `source` is what said so. `xid` is NVIDIA's number of the error; None: another fault,
    or none.
    """

    kind: NoticeKind
    title: str
    detail: str
    source: str
    xid: int | None = None


_HANDLER: Final = "AWS node termination handler"
_KARPENTER: Final = Notice(
    NoticeKind.REMOVAL,
    "Karpenter removes it",
    "A spot interruption, a consolidation or drift: the taint does not say which.",
    "Karpenter",
)
# By the key of the taint.
_TAINTS: Final = {
    "aws-node-termination-handler/spot-itn": Notice(
        NoticeKind.RECLAIM,
        "Spot interruption",
        "AWS takes the instance back two minutes after its notice.",
        _HANDLER,
    ),
    "aws-node-termination-handler/rebalance-recommendation": Notice(
        NoticeKind.RECLAIM,
        "Rebalance recommended",
        "AWS expects to take this spot instance back.",
        _HANDLER,
    ),
    "cloud.google.com/impending-node-termination": Notice(
        NoticeKind.RECLAIM, "Preemption", "Google takes the machine back.", "GKE"
    ),
    "aws-node-termination-handler/scheduled-maintenance": Notice(
        NoticeKind.REMOVAL,
        "Scheduled maintenance",
        "AWS stops, reboots or retires the instance.",
        _HANDLER,
    ),
    "aws-node-termination-handler/asg-lifecycle-termination": Notice(
        NoticeKind.REMOVAL, "Scale-in", "Its Auto Scaling group ends the instance.", _HANDLER
    ),
    "ToBeDeletedByClusterAutoscaler": Notice(
        NoticeKind.REMOVAL, "Scale-in", "Cluster Autoscaler removes the node.", "Cluster Autoscaler"
    ),
    "karpenter.sh/disrupted": _KARPENTER,
    # Until v1.
    "karpenter.sh/disruption": _KARPENTER,
}
# What these name is in every stored taint and condition that can be a notice.
TAINT_KEYS: Final = tuple(_TAINTS)
_GPU_CONDITIONS: Final = frozenset({"AcceleratedHardwareReady", "AcceleratorReady"})
CONDITION_MARKS: Final = (*sorted(_GPU_CONDITIONS), "xid", "gpu")
# NvidiaXID79Error of the EKS node monitoring agent, "NVIDIA Xid 79" of a rule of node-problem-detector, and
# "NVRM: Xid (PCI:0000:65:00): 79" of the kernel log.
_XID: Final = re.compile(r"xid(?: *\(PCI:[^)]*\))?\D{0,20}?(\d{1,4})(?!\d)", re.IGNORECASE)
_EXPORTER: Final = "dcgm-exporter"


def list_notices(
    taints: Sequence[Taint], conditions: Sequence[Condition], errors: Sequence[GpuError] = ()
) -> tuple[Notice, ...]:
    """Return the notices: GPU faults, reclaims, then removals, each title once. What a condition says comes before
    what is measured.
    """
    all_notices = (*_removals(taints), *_errors(errors), *_faults(conditions))
    found = {notice.title: notice for notice in all_notices}
    order = (NoticeKind.GPU_FAULT, NoticeKind.RECLAIM, NoticeKind.REMOVAL)
    return tuple(sorted(found.values(), key=lambda notice: order.index(notice.kind)))


def _removals(taints: Sequence[Taint]) -> Iterator[Notice]:
    for taint in taints:
        notice = _TAINTS.get(taint.key)
        if notice is not None:
            yield notice


def _errors(errors: Sequence[GpuError]) -> Iterator[Notice]:
    """A program's own faults are none of its GPU."""
    by_xid: dict[int, list[GpuError]] = {}
    for error in errors:
        if not error.is_of_program:
            by_xid.setdefault(error.xid, []).append(error)
    for xid, own in by_xid.items():
        gpus = ", ".join(error.gpu for error in own)
        where = f"GPU {gpus}" if len(own) == 1 else f"GPUs {gpus}"
        detail = f"{own[0].meaning}. {where}." if own[0].meaning else f"{where}."
        yield Notice(NoticeKind.GPU_FAULT, f"XID {xid}", detail, _EXPORTER, xid)


def _faults(conditions: Sequence[Condition]) -> Iterator[Notice]:
    """A condition that is not known is no fault."""
    for condition in conditions:
        if condition.is_healthy is not False:
            continue
        match = _XID.search(condition.reason) or _XID.search(condition.message)
        is_of_gpu = condition.type in _GPU_CONDITIONS or "gpu" in condition.type.lower()
        if match is None and not is_of_gpu:
            continue
        xid = int(match[1]) if match else None
        yield Notice(
            NoticeKind.GPU_FAULT,
            _title(xid, condition),
            _detail(xid, condition),
            condition.type,
            xid,
        )


def _title(xid: int | None, condition: Condition) -> str:
    return f"XID {xid}" if xid is not None else condition.reason or condition.type


def _detail(xid: int | None, condition: Condition) -> str:
    said = condition.message or condition.reason
    meaning = MEANINGS.get(xid) if xid is not None else None
    return ". ".join(text.rstrip(".") for text in (meaning, said) if text) + "."
