"""The status of built-in kinds, which controllers write."""

from collections.abc import Callable, Iterator, Mapping

from slipway_localcluster import kinds
from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import invalid
from slipway_localcluster.rules.formats import amount_of, find_number_faults

_COUNTS: Mapping[kinds.Kind, tuple[str, ...]] = {
    kinds.DEPLOYMENT: ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    kinds.HPA: ("currentReplicas", "desiredReplicas"),
    kinds.JOB: ("active", "failed", "ready", "succeeded", "terminating"),
    kinds.PDB: ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    kinds.REPLICA_SET: ("replicas", "readyReplicas", "availableReplicas"),
}


def find_status_faults(kind: kinds.Kind, obj: JsonObject) -> Iterator[Cause]:
    status = obj.get("status") or {}
    for name in _COUNTS.get(kind, ()):
        yield from find_number_faults(f"status.{name}", status.get(name))
    if kind in _MORE:
        yield from _MORE[kind](status)


def _replica_faults(status: JsonObject) -> Iterator[Cause]:
    """No part of the replicas is larger than all of them."""
    replicas = int(status.get("replicas") or 0)
    for name in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if int(status.get(name) or 0) > replicas:
            detail = "cannot be greater than status.replicas"
            yield invalid(f"status.{name}", status.get(name) or 0, detail)


def _quota_faults(status: JsonObject) -> Iterator[Cause]:
    for field in ("hard", "used"):
        for name, amount in (status.get(field) or {}).items():
            if amount_of(amount) < 0:
                yield invalid(f"status.{field}[{name}]", amount, "must be at least 0")


_MORE: Mapping[kinds.Kind, Callable[[JsonObject], Iterator[Cause]]] = {
    kinds.DEPLOYMENT: _replica_faults,
    kinds.RESOURCE_QUOTA: _quota_faults,
}
