"""NVIDIA's errors of GPUs (XID), by their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# NVIDIA's XID catalogue; the others are shown by their number.
MEANINGS: Final[Mapping[int, str]] = {
    13: "Graphics engine exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    45: "Preemptive cleanup, due to previous errors",
    48: "Double-bit ECC error",
    63: "ECC row remapping",
    64: "ECC row remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    119: "GSP RPC timeout",
    120: "GSP error",
}
# A program's own faults: illegal instruction or address, page fault, stopped channel, clean-up after a kill. They say
# nothing of the GPU.
OF_PROGRAMS: Final = (13, 31, 43, 45)


@dataclass(frozen=True, slots=True)
class GpuError:
    """The last XID of a GPU; `gpu` is its index on the node. `since` is ISO 8601, empty before it is stored."""

    gpu: str
    uuid: str
    xid: int
    since: str = ""

    @property
    def meaning(self) -> str:
        return MEANINGS.get(self.xid, "")

    @property
    def is_of_program(self) -> bool:
        return self.xid in OF_PROGRAMS

    def to_json(self) -> dict[str, Any]:
        return {"gpu": self.gpu, "uuid": self.uuid, "xid": self.xid, "since": self.since}


def read(rows: Iterable[Mapping[str, Any]] | None) -> tuple[GpuError, ...]:
    """Read the GPU errors from a node's column `xids`."""
    return tuple(GpuError(**row) for row in rows or ())


def with_since(
    errors: Iterable[GpuError], before: Iterable[GpuError], *, now: str
) -> list[dict[str, Any]]:
    """Return the errors to store. An error that was there before keeps the time when it was first read."""
    known = {(error.uuid or error.gpu, error.xid): error.since for error in before}
    return [
        {**error.to_json(), "since": known.get((error.uuid or error.gpu, error.xid), now)}
        for error in errors
    ]
