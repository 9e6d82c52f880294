"""Metadata rules that the store and the controllers share."""

import json
from datetime import UTC, datetime, timedelta

from slipway_localcluster.errors import Conflict, JsonObject, NotFound
from slipway_localcluster.kinds import NAMESPACE, POD, Kind

FINISHED_PHASES = ("Succeeded", "Failed")
DEFAULT_GRACE_PERIOD_SECONDS = 30
# Fields that a writer can never change.
_FIXED_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def timestamp(moment: datetime | None = None) -> str:
    """Format a time as Kubernetes does: UTC, whole seconds."""
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(
        f'{kind.resource} "{name}" not found',
        details={"name": name, "group": kind.group, "kind": kind.plural},
    )


def conflict(kind: Kind, name: str, reason: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {kind.resource} "{name}": {reason}',
        details={"name": name, "group": kind.group, "kind": kind.plural},
    )


def has_finalizers(obj: JsonObject) -> bool:
    """Return whether finalizers keep a deleted object (a namespace also has some in its spec)."""
    if obj["metadata"].get("finalizers"):
        return True
    is_namespace = obj.get("kind") == NAMESPACE.kind and obj.get("apiVersion") == "v1"
    return is_namespace and bool((obj.get("spec") or {}).get("finalizers"))


def grace_seconds_of(kind: Kind, obj: JsonObject, requested: int | None) -> int:
    """Return how long a deleted pod stays for its node agent. 0 for pods that do not run, and other kinds."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if kind is not POD or not spec.get("nodeName") or status.get("phase") in FINISHED_PHASES:
        return 0
    if requested is not None:
        return requested
    return int(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_PERIOD_SECONDS))


def mark_deleted(kind: Kind, obj: JsonObject, grace_seconds: int) -> JsonObject:
    """Return the object with a deletion time. A repeated deletion can only shorten the grace period."""
    metadata = obj["metadata"]
    current = metadata.get("deletionGracePeriodSeconds", 0)
    if "deletionTimestamp" in metadata and grace_seconds >= current:
        return obj
    deletion = {
        "deletionTimestamp": timestamp(datetime.now(UTC) + timedelta(seconds=grace_seconds)),
        "deletionGracePeriodSeconds": grace_seconds,
    }
    marked = obj | {"metadata": metadata | deletion}
    if kind is NAMESPACE:
        marked["status"] = (obj.get("status") or {}) | {"phase": "Terminating"}
    return marked


def is_removable(obj: JsonObject) -> bool:
    """Return whether a deleted object has neither finalizers nor a grace period."""
    metadata = obj["metadata"]
    is_drained = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
    return is_drained and not has_finalizers(obj)


def load(text: str) -> JsonObject:
    loaded: JsonObject = json.loads(text)
    return loaded


def keep_fixed_metadata(updated: JsonObject, current: JsonObject) -> None:
    metadata = updated["metadata"]
    for field in _FIXED_METADATA:
        metadata.pop(field, None)
        if field in current["metadata"]:
            metadata[field] = current["metadata"][field]
    metadata["resourceVersion"] = current["metadata"]["resourceVersion"]
