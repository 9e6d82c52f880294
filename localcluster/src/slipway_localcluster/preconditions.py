"""Checks the uid and version on which a write depends."""

from slipway_localcluster.decoding import invalid
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import Kind
from slipway_localcluster.objects import conflict
from slipway_localcluster.rules.causes import invalid as invalid_value
from slipway_localcluster.topology import NATIVE_GROUPS

_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def require(kind: Kind, live: JsonObject, *, uid: str | None, version: str | None) -> None:
    """Check the preconditions of a deletion. Raises Conflict."""
    for field, expected in (("uid", uid), ("resourceVersion", version)):
        actual = live["metadata"][field]
        if expected not in (None, actual):
            name = {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
            reason = (
                f"Precondition failed: {name} in precondition: {expected}, "
                f"{name} in object meta: {actual}"
            )
            raise conflict(kind, live["metadata"]["name"], reason)


def require_replaceable(kind: Kind, live: JsonObject, obj: JsonObject) -> None:
    """Check the object of a PUT. Raises Conflict for another object, Invalid for a custom kind without a version."""
    metadata, name = obj["metadata"], live["metadata"]["name"]
    uid = metadata.get("uid", live["metadata"]["uid"])
    require(kind, live, uid=uid, version=metadata.get("resourceVersion") or None)
    if kind.group not in NATIVE_GROUPS and not metadata.get("resourceVersion"):
        fault = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(kind, name, [fault])


def require_current(kind: Kind, live: JsonObject, obj: JsonObject) -> None:
    """Raises Conflict where the object states another version."""
    version = obj["metadata"].get("resourceVersion")
    if version and version != live["metadata"]["resourceVersion"]:
        raise conflict(kind, live["metadata"]["name"], _MODIFIED)
