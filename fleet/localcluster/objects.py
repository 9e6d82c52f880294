"""Metadata rules that the store and the controllers share."""

import json
from datetime import UTC, datetime

from fleet.localcluster.errors import Conflict, JsonObject, NotFound
from fleet.localcluster.kinds import NAMESPACE, Kind

# Fields that a writer can never change.
_FIXED_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def timestamp(moment: datetime | None = None) -> str:
    """The Kubernetes form of a time: UTC, whole seconds."""
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
    """True while finalizers keep a deleted object (a namespace also has some in its spec)."""
    if obj["metadata"].get("finalizers"):
        return True
    is_namespace = obj.get("kind") == NAMESPACE.kind and obj.get("apiVersion") == "v1"
    return is_namespace and bool((obj.get("spec") or {}).get("finalizers"))


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
