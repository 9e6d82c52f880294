"""Status conditions: a list keyed by type whose times change only when the status does."""

from collections.abc import Iterable

from fleet.localcluster.errors import JsonObject
from fleet.localcluster.objects import timestamp

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


def condition(kind: str, status: str, *, reason: str = "", message: str = "") -> JsonObject:
    """One condition; empty words are left out."""
    made: JsonObject = {"type": kind, "status": status}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def merge(current: Iterable[JsonObject] | None, wanted: Iterable[JsonObject]) -> list[JsonObject]:
    """The wanted conditions; a time stays as long as its condition's status does."""
    known = {item["type"]: item for item in current or ()}
    return [_timed(known.get(item["type"]), item) for item in wanted]


def _timed(old: JsonObject | None, new: JsonObject) -> JsonObject:
    if old is not None and old["status"] == new["status"] and "lastTransitionTime" in old:
        return {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return {**new, "lastTransitionTime": timestamp()}


def find(obj: JsonObject, kind: str) -> JsonObject | None:
    listed = (obj.get("status") or {}).get("conditions") or ()
    return next((item for item in listed if item["type"] == kind), None)


def is_true(obj: JsonObject, kind: str) -> bool:
    found = find(obj, kind)
    return found is not None and found["status"] == TRUE
