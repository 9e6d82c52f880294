"""The two versions of an event: core/v1, which is stored, and events.k8s.io/v1."""

from slipway_localcluster.discovery import EVENTS_GROUP
from slipway_localcluster.errors import JsonObject

_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("source", "deprecatedSource"),
    ("reportingComponent", "reportingController"),
)


def to_new(event: JsonObject) -> JsonObject:
    names = dict(_RENAMED)
    renamed = {names.get(name, name): value for name, value in event.items()}
    return renamed | {"apiVersion": f"{EVENTS_GROUP}/v1"}


def to_core(event: JsonObject) -> JsonObject:
    names = {new: core for core, new in _RENAMED}
    renamed = {names.get(name, name): value for name, value in event.items()}
    return renamed | {"apiVersion": "v1"}
