"""Configurations of NVIDIA's device plugin: the keys of its ConfigMap, and how each shares GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from fleet.gpus.domain.shares import SHARED, WHOLE

CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
TIME_SLICING: Final = "time-slicing"
MPS: Final = "mps"
NONE: Final = "none"
_FIELDS: Final = {"timeSlicing": TIME_SLICING, "mps": MPS}
_LONGEST: Final = 64 * 1024
_MOST_REPLICAS: Final = 1000
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A configuration of the device plugin. `strategy` is none, time-slicing or mps, with `replicas` of each whole
    GPU. `problem` says why it cannot be used.
    """

    key: str
    strategy: str = NONE
    replicas: int = 1
    is_renamed: bool = False
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.key}: {self.problem}"
        if self.strategy == NONE:
            return f"{self.key}: GPUs are not shared"
        return f"{self.key}: {self.replicas} replicas per GPU, {self.strategy}"

    def resources(self, gpu_count: int) -> dict[str, int]:
        """Return what a node of `gpu_count` whole GPUs offers with this configuration, by resource."""
        return {SHARED if self.is_renamed else WHOLE: gpu_count * self.replicas}


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """The ConfigMap that the device plugin of a node reads."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def find_source(pods: list[Mapping[str, Any]]) -> ConfigSource | None:
    """Return the ConfigMap that the config manager of the node's device plugin pod reads. None if there is none."""
    for pod in pods:
        spec = pod.get("spec") or {}
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            name = _config_map(spec, container)
            if name:
                return ConfigSource(str(pod["metadata"]["namespace"]), name)
    return None


def _config_map(spec: Mapping[str, Any], container: Mapping[str, Any]) -> str:
    env = {item["name"]: item.get("value") for item in container.get("env") or ()}
    folder = env.get("CONFIG_FILE_SRCDIR")
    if env.get("NODE_LABEL") != CONFIG_LABEL or not folder:
        return ""
    volumes = {
        mount["name"]
        for mount in container.get("volumeMounts") or ()
        if mount.get("mountPath") == folder
    }
    names = [
        str(volume["configMap"]["name"])
        for volume in spec.get("volumes") or ()
        if volume["name"] in volumes and volume.get("configMap")
    ]
    return names[0] if names else ""


def read_configs(data: Mapping[str, str]) -> tuple[PluginConfig, ...]:
    """Read the configurations in a ConfigMap, ordered by key."""
    return tuple(_read(key, data[key]) for key in sorted(data))


def _read(key: str, text: str) -> PluginConfig:
    if not _LABEL_VALUE.fullmatch(key):
        return PluginConfig(key, problem="its key cannot be the value of a label")
    if len(text) > _LONGEST:
        return PluginConfig(key, problem="it is too long")
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return PluginConfig(key, problem="it is not YAML")
    if raw is not None and not isinstance(raw, Mapping):
        return PluginConfig(key, problem="it is not a configuration of the device plugin")
    shared = list(_sharings((raw or {}).get("sharing")))
    if len(shared) > 1:
        return PluginConfig(
            key, problem="it has time-slicing and MPS, of which a node can have one"
        )
    return _of(key, *shared[0]) if shared else PluginConfig(key)


def _sharings(sharing: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(sharing, Mapping):
        for field, strategy in _FIELDS.items():
            if isinstance(sharing.get(field), Mapping):
                yield strategy, sharing[field]


def _of(key: str, strategy: str, body: Mapping[str, Any]) -> PluginConfig:
    entries = body.get("resources")
    entries_of_gpus = [
        item
        for item in (entries if isinstance(entries, list) else ())
        if isinstance(item, Mapping) and item.get("name") == WHOLE
    ]
    if not entries_of_gpus:
        return PluginConfig(key, problem=f"it shares no {WHOLE}")
    replicas = entries_of_gpus[0].get("replicas")
    if type(replicas) is not int or not 2 <= replicas <= _MOST_REPLICAS:
        return PluginConfig(key, problem=f"its replicas are not 2 to {_MOST_REPLICAS}")
    return PluginConfig(key, strategy, replicas, is_renamed=body.get("renameByDefault") is True)
