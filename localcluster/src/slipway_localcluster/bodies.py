"""Request bodies: parsed, identified, and merged into the stored object."""

import base64
import json
from typing import Any

import yaml

from slipway_localcluster import patches
from slipway_localcluster.errors import BadRequest, JsonObject, UnsupportedMediaType
from slipway_localcluster.kinds import NAMESPACE, Kind
from slipway_localcluster.topology import NATIVE_GROUPS, Topology

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def identify(kind: Kind, namespace: str | None, name: str | None, body: JsonObject) -> JsonObject:
    api_version, name_of_kind = (
        body.get("apiVersion", kind.api_version),
        body.get("kind", kind.kind),
    )
    if (api_version, name_of_kind) != (kind.api_version, kind.kind):
        raise BadRequest(
            f"the object provided is {api_version} {name_of_kind}, not {kind.api_version} {kind.kind}"
        )
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        raise BadRequest("the object has no metadata")
    metadata = dict(metadata)
    if name and metadata.setdefault("name", name) != name:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
        )
    if kind.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def keep_server_fields(kind: Kind, obj: JsonObject, live: JsonObject) -> JsonObject:
    """Restore fields that only the server sets and a PUT may leave out."""
    if kind is NAMESPACE and "spec" not in obj:
        return obj | {"spec": live.get("spec", {})}
    return obj


def patch(kind: Kind, live: JsonObject, document: Any, content_type: str) -> JsonObject:
    if content_type == JSON_PATCH:
        patched = patches.json_patch(live, document)
    elif not isinstance(document, dict):
        raise BadRequest("the patch is not an object")
    elif content_type == MERGE:
        patched = patches.merge_patch(live, document)
    elif content_type == STRATEGIC and kind.group in NATIVE_GROUPS:
        patched = patches.strategic_merge_patch(live, document, Topology(kind))
    else:
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format: {content_type}"
        )
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise BadRequest("the result of the patch is not an object")
    return patched


def patched_part(kind: Kind, subresource: str, live: JsonObject, patched: JsonObject) -> JsonObject:
    """Return the patched object without what this resource does not write: all but the status, or the status."""
    if subresource == "status":
        return {**live, "metadata": patched["metadata"], "status": patched.get("status")}
    return {**patched, "status": live.get("status")} if kind.has_status else patched


def parse_json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error


def parse_yaml(raw: bytes) -> JsonObject:
    try:
        # Most clients send JSON, which is YAML but parses far faster as JSON.
        body = json.loads(raw) if raw.lstrip()[:1] == b"{" else yaml.safe_load(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise BadRequest(f"the body is not YAML: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is not an object")
    return body


def encode_string_data(obj: JsonObject) -> None:
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict):
        encoded = {
            name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()
        }
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def merge_into(live: JsonObject, obj: JsonObject, kind: Kind, subresource: str) -> JsonObject:
    """The main resource never writes status; the status subresource writes nothing else."""
    if subresource != "status":
        if not kind.has_status:
            return obj
        merged = {name: value for name, value in obj.items() if name != "status"}
        return merged | ({"status": live["status"]} if "status" in live else {})
    merged = {name: value for name, value in live.items() if name != "status"}
    if "status" in obj:
        merged["status"] = obj["status"]
    sent = obj["metadata"]
    kept = {name: sent[name] for name in ("resourceVersion", "managedFields") if name in sent}
    merged["metadata"] = live["metadata"] | kept
    return merged
