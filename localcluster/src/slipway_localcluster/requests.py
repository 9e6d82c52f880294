"""Parses requests: target, body, and the format of the response."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from slipway_localcluster.discovery import EVENTS_GROUP
from slipway_localcluster.errors import BadRequest, JsonObject, NotFound, UnsupportedMediaType
from slipway_localcluster.kinds import EVENT, NAMESPACE, Kind, by_plural
from slipway_localcluster.writes import Target

Query = Mapping[str, str]

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Resource:
    """A parsed path below /api or /apis."""

    target: Target
    rest: str = ""
    # The newer form of events: stored as core/v1, returned as events.k8s.io/v1.
    is_new_event: bool = False

    @property
    def kind(self) -> Kind:
        return self.target.kind


def parse_resource(group: str, version: str, parts: list[str]) -> Resource:
    """Parse the resource of a path. `parts` is the path after the version."""
    namespace = None
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, parts = parts[1], parts[2:]
    is_new_event = (group, version, parts[0]) == (EVENTS_GROUP, "v1", EVENT.plural)
    kind = EVENT if is_new_event else by_plural(group, version, parts[0])
    name = parts[1] if len(parts) > 1 else None
    subresource = parts[2] if len(parts) > 2 else ""
    if kind.namespaced is (namespace is None) and (namespace or name):
        raise NotFound("the server could not find the requested resource")
    if kind is NAMESPACE:
        namespace = None
    target = Target(kind, namespace, name, subresource)
    return Resource(target, "/".join(parts[3:]), is_new_event)


def read_body(raw: bytes, content_type: str) -> JsonObject:
    if not raw:
        return {}
    if content_type == _PROTOBUF:
        raise UnsupportedMediaType(
            "the local cluster reads JSON and YAML, not protobuf; write the object to a file and "
            "use kubectl apply -f"
        )
    try:
        body: Any = yaml.safe_load(raw) if "yaml" in content_type else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise BadRequest(f"the body of the request cannot be read: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body of the request is not an object")
    return body


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip()


def wants_table(accept: str) -> bool:
    """Return whether the first supported format that the client accepts is a v1 Table."""
    for choice in accept.split(","):
        media, *parameters = [part.strip() for part in choice.split(";")]
        if media not in ("application/json", "*/*"):
            continue
        named = dict(part.partition("=")[::2] for part in parameters)
        if named.get("as") == "Table" and named.get("v") == "v1":
            return True
        if "as" not in named:
            return False
    return False


def is_true(value: str | None) -> bool:
    return value in ("true", "1")
