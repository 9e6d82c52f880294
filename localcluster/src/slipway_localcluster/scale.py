"""The scale subresource of Deployments and ReplicaSets."""

from slipway_localcluster import patches
from slipway_localcluster.bodies import JSON_PATCH
from slipway_localcluster.errors import Cause, Invalid, JsonObject


def scale_of(obj: JsonObject) -> JsonObject:
    metadata = obj["metadata"]
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec = obj.get("spec") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in fields if name in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {
            "replicas": (obj.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{name}={value}" for name, value in sorted(labels.items())),
        },
    }


def patched_scale(obj: JsonObject, document: object, content_type: str) -> JsonObject:
    current = scale_of(obj)
    is_json_patch = content_type == JSON_PATCH
    patch = patches.json_patch if is_json_patch else patches.merge_patch
    patched: JsonObject = patch(current, document)
    replicas = (patched.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        message = f"Invalid value: {replicas!r}: replicas is not a whole number"
        raise Invalid(message, causes=[Cause("FieldValueInvalid", message, "patch")])
    return patched


def with_scale(obj: JsonObject, scale: JsonObject) -> JsonObject:
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        message = f"Invalid value: {replicas!r}: must be a whole number, not negative"
        raise Invalid(message, causes=[Cause("FieldValueInvalid", message, "spec.replicas")])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    metadata = dict(obj["metadata"])
    if version:
        metadata["resourceVersion"] = version
    return obj | {"metadata": metadata, "spec": (obj.get("spec") or {}) | {"replicas": replicas}}
