"""How lists and maps of each type are merged: by key, as a set, or as a whole.

The tables restate what the published types declare (list-type, list-map-keys, map-type); they
go by field name and group, which is enough for the types served here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway_localcluster.errors import Cause, Invalid, JsonObject
from slipway_localcluster.kinds import ENDPOINTS, NETWORK_POLICY, SERVICE, Kind

NATIVE_GROUPS = frozenset(
    {
        "",
        "apps",
        "autoscaling",
        "batch",
        "policy",
        "networking.k8s.io",
        "coordination.k8s.io",
        "apiextensions.k8s.io",
    }
)

Keys = tuple[str, ...]

_METADATA: Mapping[str, Keys] = {"ownerReferences": ("uid",)}
_SETS = frozenset({"finalizers"})
_NATIVE: Mapping[str, Keys] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "schedulingGates": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "podIPs": ("ip",),
}
# KServe declares these; its own lists (predictor containers, volumes) are atomic.
_KSERVE: Mapping[str, Keys] = {
    name: _NATIVE[name]
    for name in (
        "env",
        "ports",
        "volumeMounts",
        "volumeDevices",
        "topologySpreadConstraints",
        "resourceClaims",
        "claims",
        "schedulingGates",
    )
}
_GATEWAY: Mapping[str, Keys] = {"conditions": ("type",), "listeners": ("name",)}
_ATOMIC_MAPS = frozenset({"selector", "nodeSelector", "matchLabels", "labelSelector"})
_ATOMIC_STRUCTS = frozenset({"secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"})
_KEY_DEFAULTS = {"protocol": "TCP"}
# Strategic merge knows one key where server-side apply uses two, and merges taints.
_STRATEGIC: Mapping[str, Keys] = {**_NATIVE, "ports": ("containerPort",), "taints": ("key",)}
_STRATEGIC_LISTS_OF_VALUES = frozenset({"finalizers"})


@dataclass(frozen=True, slots=True)
class Topology:
    """Merge rules of one kind."""

    kind: Kind

    def list_keys(self, path: Sequence[str]) -> Keys | None:
        """Return the fields that identify elements of the list at `path`. None if the list has no keys."""
        name = path[-1]
        if path[0] == "metadata":
            return _METADATA.get(name)
        if self.kind is SERVICE and tuple(path) == ("spec", "ports"):
            return ("port", "protocol")
        if self.kind in (NETWORK_POLICY, ENDPOINTS):
            return None
        if self.kind.group in NATIVE_GROUPS:
            return _NATIVE.get(name)
        # Conditions of routes are inside the atomic list `parents`, so they do not reach this line.
        return (_GATEWAY if self.kind.group.startswith("gateway") else _KSERVE).get(name)

    def is_set(self, path: Sequence[str]) -> bool:
        return path[-1] in _SETS and path[0] == "metadata"

    def is_atomic_map(self, path: Sequence[str]) -> bool:
        if path[-1] in _ATOMIC_STRUCTS:
            return True
        return path[-1] in _ATOMIC_MAPS and path[0] in ("spec", "status")

    def strategic_key(self, path: Sequence[str]) -> str | None:
        """Return the merge key of a strategic merge patch. None if the patch replaces the list."""
        if path[0] == "metadata":
            return "uid" if path[-1] == "ownerReferences" else None
        if self.kind is SERVICE and tuple(path) == ("spec", "ports"):
            return "port"
        keys = _STRATEGIC.get(path[-1])
        return None if keys is None else keys[0]

    def is_strategic_set(self, path: Sequence[str]) -> bool:
        return path[-1] in _STRATEGIC_LISTS_OF_VALUES


def item_key(item: object, keys: Keys, path: Sequence[str]) -> JsonObject:
    """Return the key of a list element, with null for what it lacks. Raises Invalid if it has no fields."""
    if not isinstance(item, dict):
        field = ".".join(path)
        message = f"elements must be objects with {', '.join(keys)}"
        raise Invalid(f"{field}: {message}", causes=[Cause("FieldValueInvalid", message, field)])
    return {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in keys}
