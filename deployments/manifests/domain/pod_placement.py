"""The placement of a revision's pods: what its settings write, with names and labels of the workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.manifests.domain.metadata import (
    WORKLOAD_LABEL,
    Manifest,
    ManifestContext,
    ServedRevision,
    labels_of,
    metadata,
)
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.pod_parts import DependentObject, PodContext, PodParts


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """The pods of a revision, with the parts that their placement writes."""

    context: ManifestContext
    served: ServedRevision
    parts: PodParts

    @property
    def node_fields(self) -> dict[str, Any]:
        """The fields of a pod's spec that choose its node: tolerations, node selector and node affinity."""
        spot_labels = self.context.node_labels.spot
        tolerated = catalogue.tolerations_of(self.served.spec, spot_labels)
        return {"tolerations": [one.manifest() for one in tolerated], **self.parts.node_fields}

    @property
    def fields(self) -> dict[str, Any]:
        """All fields of a pod's spec that the placement writes."""
        return {**self.node_fields, **self.parts.fields}

    @property
    def labels(self) -> dict[str, str]:
        workload = workload_name(self.context.deployment, self.served.number)
        own = {**labels_of(self.context, self.served), WORKLOAD_LABEL: workload}
        return {**own, **self.parts.workload_labels, **self.parts.labels}

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of pods alone, not of the objects that create them."""
        return dict(self.parts.annotations)

    @property
    def workload_labels(self) -> dict[str, str]:
        """The labels that the placement adds to the workload."""
        return dict(self.parts.workload_labels)

    @property
    def resources(self) -> dict[str, Any]:
        """The resources of the server's container. Requests equal limits: Kubernetes requires it for GPUs, and no pod
        is evicted for memory.
        """
        spec = self.served.spec
        amounts = {"cpu": spec.cpu, "memory": spec.memory, **self.parts.amounts}
        resources: dict[str, Any] = {"requests": amounts, "limits": dict(amounts)}
        if self.parts.claims:
            resources["claims"] = [{"name": name} for name in self.parts.claims]
        return resources

    @property
    def objects(self) -> list[Manifest]:
        """The objects that the placement needs beside the workload."""
        return [
            manifest_of(one, metadata(self.context, one.name, self.served))
            for one in self.parts.objects
        ]


def place(context: ManifestContext, served: ServedRevision) -> PlacedPods:
    workload = workload_name(context.deployment, served.number)
    pods = PodContext(context.node_labels, workload, {WORKLOAD_LABEL: workload})
    return PlacedPods(context, served, catalogue.write(served.spec, pods))


def manifest_of(one: DependentObject, meta: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": one.api_version,
        "kind": one.kind,
        "metadata": dict(meta),
        "spec": dict(one.spec),
    }
