"""GPUs by ResourceClaim: the template from which Kubernetes makes a claim for each worker's pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deployments.manifests.domain.accelerators import resource_claims
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from fleet.gpus.domain import claimed_gpus
from fleet.gpus.domain.claimed_gpus import CLAIMED_LABEL

API_VERSION: Final = resource_claims.API_VERSION
KIND: Final = resource_claims.KIND


def templates(
    context: ManifestContext, served: ServedRevision, labels: Mapping[str, str]
) -> list[Manifest]:
    """Return the ResourceClaimTemplate of the workers. Empty if they request the device plugin's resource."""
    if not served.spec.placement.device_claims:
        return []
    return [
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": resource_claims.name_of(context, served),
                "namespace": context.namespace,
                "labels": dict(labels),
            },
            "spec": resource_claims.spec_of(served.spec),
        }
    ]


def pod_labels(served: ServedRevision) -> dict[str, str]:
    """Return the label for the GPUs that a pod with a claim holds, until the fleet reads its devices. Empty without
    claims.
    """
    spec = served.spec
    if not spec.placement.device_claims:
        return {}
    return {CLAIMED_LABEL: claimed_gpus.label_of(spec.gpu_resource, spec.gpus)}
