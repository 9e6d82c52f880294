"""Which ServiceMonitors the cluster's own Prometheus reads, by its custom resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleet.kube.domain.label_selectors import LabelSelector

# None in the custom resource: no monitors; and for namespaces, the Prometheus' own alone.
_MONITORS: Final = ("serviceMonitorSelector", "podMonitorSelector")
_NAMESPACES: Final = ("serviceMonitorNamespaceSelector", "podMonitorNamespaceSelector")


@dataclass(frozen=True, slots=True)
class PrometheusSelection:
    """The monitors that a Prometheus selects. `selectors` are those of the custom resource's spec, by their names
    there.
    """

    namespace: str
    name: str
    selectors: Mapping[str, Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def labels_for(self, monitor: str) -> dict[str, str] | None:
        """Return the labels with which it reads a ServiceMonitor or PodMonitor; None where it reads none."""
        raw = self.selectors.get(f"{_field(monitor)}Selector")
        return None if raw is None else LabelSelector.from_json(raw).find_fewest_labels()

    def reads_all_namespaces(self, monitor: str) -> bool:
        return self.selectors.get(f"{_field(monitor)}NamespaceSelector") == {}

    def reads_namespace(self, monitor: str, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether it reads a namespace, whose `labels` come without the one that Kubernetes sets."""
        raw = self.selectors.get(f"{_field(monitor)}NamespaceSelector")
        if raw is None:
            return namespace == self.namespace
        named = {"kubernetes.io/metadata.name": namespace}
        return LabelSelector.from_json(raw).matches({**labels, **named})

    def labels_for_namespace(self, monitor: str) -> dict[str, str]:
        """Return the labels with which it reads a namespace; empty where labels are not what it needs."""
        raw = self.selectors.get(f"{_field(monitor)}NamespaceSelector") or {}
        return LabelSelector.from_json(raw).find_fewest_labels() or {}

    def to_json(self) -> dict[str, Any]:
        return {"namespace": self.namespace, "name": self.name, "selectors": dict(self.selectors)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> PrometheusSelection:
        return cls(raw["namespace"], raw["name"], raw["selectors"])


def parse(prometheuses: Iterable[Mapping[str, Any]]) -> tuple[PrometheusSelection, ...]:
    """Parse the custom resources, sorted by namespace and name."""
    return tuple(sorted(map(_selection, prometheuses), key=str))


def choose(
    selections: Iterable[PrometheusSelection], monitor: str = "ServiceMonitor"
) -> PrometheusSelection | None:
    """Return the Prometheus that a monitor is labelled for: the first that reads monitors at all, one that reads
    every namespace before the others.
    """
    reading = [each for each in selections if each.labels_for(monitor) is not None]
    reading.sort(key=lambda selection: not selection.reads_all_namespaces(monitor))
    return reading[0] if reading else None


def _selection(item: Mapping[str, Any]) -> PrometheusSelection:
    spec = item.get("spec") or {}
    stated = {name: spec[name] for name in (*_MONITORS, *_NAMESPACES) if spec.get(name) is not None}
    return PrometheusSelection(item["metadata"]["namespace"], item["metadata"]["name"], stated)


def _field(monitor: str) -> str:
    return monitor[:1].lower() + monitor[1:]
