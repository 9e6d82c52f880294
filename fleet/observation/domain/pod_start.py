"""How long each step of a pod's first start took, from the times in its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

# In the order in which a pod takes them.
NODE: Final = "node"
IMAGE: Final = "image"
DOWNLOAD: Final = "download"
COMPARE: Final = "compare"
LOAD: Final = "load"
LABELS: Final[Mapping[str, str]] = {
    NODE: "Node",
    IMAGE: "Image",
    DOWNLOAD: "Download",
    COMPARE: "Digests",
    LOAD: "Load",
}
STEPS: Final = tuple(LABELS)
# The init containers that the portal and KServe write.
_INIT_STEPS: Final = {"storage-initializer": DOWNLOAD, "digest-check": COMPARE}
Json = Mapping[str, Any]


def measure_steps(
    status: Json,
    *,
    created_at: datetime,
    scheduled_at: datetime | None,
    ready_at: datetime | None,
) -> dict[str, int]:
    """Return whole seconds by step. Images and the start of containers are what the other steps leave. Empty for a
    pod that is not ready, or of which a container was restarted: that is not a start to compare others with.
    """
    servers: Sequence[Json] = status.get("containerStatuses") or ()
    inits: Sequence[Json] = status.get("initContainerStatuses") or ()
    starts = [_time(container, "running", "startedAt") for container in servers]
    known = [at for at in starts if at is not None]
    if scheduled_at is None or ready_at is None or not known or len(known) < len(starts):
        return {}
    if any(container.get("restartCount") for container in (*servers, *inits)):
        return {}
    seconds = dict.fromkeys(STEPS, 0.0)
    seconds[NODE] = (scheduled_at - created_at).total_seconds()
    for container in inits:
        step = _INIT_STEPS.get(str(container.get("name")))
        began = _time(container, "terminated", "startedAt")
        ended = _time(container, "terminated", "finishedAt")
        if step and began and ended:
            seconds[step] += (ended - began).total_seconds()
    seconds[LOAD] = (ready_at - max(known)).total_seconds()
    whole = (ready_at - created_at).total_seconds()
    seconds[IMAGE] = whole - sum(seconds.values())
    return {step: max(0, round(value)) for step, value in seconds.items()}


def _time(container: Json, state: str, field: str) -> datetime | None:
    text = ((container.get("state") or {}).get(state) or {}).get(field)
    return datetime.fromisoformat(text) if text else None
