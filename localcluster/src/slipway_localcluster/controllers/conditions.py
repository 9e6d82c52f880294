"""Status conditions: a list keyed by type whose times change only when the status does."""

from collections.abc import Iterable

from slipway_localcluster.errors import JsonObject
from slipway_localcluster.objects import timestamp

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


def condition(kind: str, status: str, *, reason: str = "", message: str = "") -> JsonObject:
    """Return a condition. An empty reason or message is left out."""
    built: JsonObject = {"type": kind, "status": status}
    if reason:
        built["reason"] = reason
    if message:
        built["message"] = message
    return built


def merge(current: Iterable[JsonObject] | None, desired: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the desired conditions. A condition whose status is unchanged keeps its transition time."""
    by_type = {item["type"]: item for item in current or ()}
    return [_timed(by_type.get(item["type"]), item) for item in desired]


def _timed(old: JsonObject | None, new: JsonObject) -> JsonObject:
    if old is not None and old["status"] == new["status"] and "lastTransitionTime" in old:
        return {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return {**new, "lastTransitionTime": timestamp()}


def find(obj: JsonObject, kind: str) -> JsonObject | None:
    listed = (obj.get("status") or {}).get("conditions") or ()
    return next((item for item in listed if item["type"] == kind), None)


def is_true(obj: JsonObject, kind: str) -> bool:
    match = find(obj, kind)
    return match is not None and match["status"] == TRUE
