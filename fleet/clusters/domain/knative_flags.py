"""The pod fields that Knative Serving allows: the flags in its ConfigMap `config-features`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

CONFIG_MAP: Final = ("knative-serving", "config-features")
# By these a pod reaches a GPU node (its instance type, on-demand or spot, its taint) and downloads
# its model.
ALWAYS_NEEDED: Final = (
    "kubernetes.podspec-affinity",
    "kubernetes.podspec-init-containers",
    "kubernetes.podspec-nodeselector",
    "kubernetes.podspec-tolerations",
)
_ON_BY_DEFAULT: Final = frozenset({"kubernetes.podspec-volumes-emptydir"})
_PREFIX: Final = "kubernetes."
_VALUES: Final = ("enabled", "allowed", "disabled")


def parse(data: Mapping[str, str]) -> dict[str, str]:
    """Return the pod flags that are set in the ConfigMap. Knative ignores any other value."""
    return {
        name: value.lower()
        for name, value in data.items()
        if name.startswith(_PREFIX) and value.lower() in _VALUES
    }


def list_disabled(flags: Mapping[str, str], needed: Iterable[str]) -> list[str]:
    """Return which of the needed flags are off, sorted."""
    return sorted(name for name in set(needed) if _value(flags, name) == "disabled")


def _value(flags: Mapping[str, str], name: str) -> str:
    return flags.get(name, "enabled" if name in _ON_BY_DEFAULT else "disabled")


def describe_fix(names: Iterable[str]) -> str:
    namespace, config_map = CONFIG_MAP
    return f"set {' and '.join(names)} to enabled in ConfigMap {config_map} of {namespace}"
