"""Owner references, and status writes of the controller that owns a status."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from slipway_localcluster.errors import JsonObject, NotFound
from slipway_localcluster.kinds import Kind
from slipway_localcluster.store import Store


def controller_reference(owner: JsonObject) -> JsonObject:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_uids(obj: JsonObject) -> list[str]:
    return [item["uid"] for item in obj["metadata"].get("ownerReferences") or ()]


def filter_owned(owner: JsonObject, objects: Iterable[JsonObject]) -> list[JsonObject]:
    uid = owner["metadata"]["uid"]
    return [item for item in objects if uid in owner_uids(item)]


def write_status(store: Store, kind: Kind, obj: JsonObject, status: JsonObject) -> None:
    """Write a status that no one else writes, so resource versions are not compared."""
    metadata = {name: obj["metadata"].get(name) for name in ("namespace", "name", "uid")}
    with suppress(NotFound):
        store.replace_status(kind, {"metadata": metadata, "status": status})


def is_same_status(left: JsonObject, right: JsonObject) -> bool:
    """Compare two statuses without nulls and empty objects, which an API server adds to what was written."""
    return bool(_without_empty(left) == _without_empty(right))


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    pairs = ((name, _without_empty(item)) for name, item in value.items())
    return {name: item for name, item in pairs if item is not None and item != {}}


def is_deleted(obj: JsonObject) -> bool:
    return "deletionTimestamp" in obj["metadata"]
