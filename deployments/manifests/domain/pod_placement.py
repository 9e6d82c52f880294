"""The placement of a revision's pods: what its settings write, with names and labels of the workload."""

from __future__ import annotations

from collections.abc import Mapping
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


def parts_of(context: ManifestContext, served: ServedRevision) -> PodParts:
    workload = workload_name(context.deployment, served.number)
    pods = PodContext(context.node_labels, workload, {WORKLOAD_LABEL: workload})
    return catalogue.write(served.spec, pods)


def node_fields_of(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """Return the fields of a pod's spec that choose its node: tolerations, node selector and node affinity."""
    tolerated = catalogue.tolerations_of(served.spec, context.node_labels.spot)
    manifests = [one.manifest() for one in tolerated]
    return {"tolerations": manifests, **parts_of(context, served).node_fields}


def fields_of(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """Return all fields of a pod's spec that its placement writes."""
    return {**node_fields_of(context, served), **parts_of(context, served).fields}


def pod_labels_of(context: ManifestContext, served: ServedRevision) -> dict[str, str]:
    workload = workload_name(context.deployment, served.number)
    parts = parts_of(context, served)
    own = {**labels_of(context, served), WORKLOAD_LABEL: workload}
    return {**own, **parts.workload_labels, **parts.labels}


def pod_annotations_of(context: ManifestContext, served: ServedRevision) -> dict[str, str]:
    """Return the annotations of pods alone, not of the objects that create them."""
    return dict(parts_of(context, served).annotations)


def workload_labels_of(context: ManifestContext, served: ServedRevision) -> dict[str, str]:
    """Return the labels that the placement adds to the workload."""
    return dict(parts_of(context, served).workload_labels)


def resources_of(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """Return the resources of the server's container. Requests equal limits: Kubernetes requires it for GPUs, and no
    pod is evicted for memory.
    """
    parts, spec = parts_of(context, served), served.spec
    amounts = {"cpu": spec.cpu, "memory": spec.memory, **parts.amounts}
    resources: dict[str, Any] = {"requests": amounts, "limits": dict(amounts)}
    if parts.claims:
        resources["claims"] = [{"name": name} for name in parts.claims]
    return resources


def objects_of(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    """Return the objects that the placement needs beside the workload."""
    return [
        manifest_of(one, metadata(context, one.name, served))
        for one in parts_of(context, served).objects
    ]


def manifest_of(one: DependentObject, meta: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": one.api_version,
        "kind": one.kind,
        "metadata": dict(meta),
        "spec": dict(one.spec),
    }
