"""The Knative features that the pods of a revision need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deployments.manifests.domain.metadata import Manifest

# Fields of the predictor that become fields of Knative's pod spec.
_FLAGS: Final[Mapping[str, str]] = {
    "affinity": "kubernetes.podspec-affinity",
    "initContainers": "kubernetes.podspec-init-containers",
    "nodeSelector": "kubernetes.podspec-nodeselector",
    "priorityClassName": "kubernetes.podspec-priorityclassname",
    "runtimeClassName": "kubernetes.podspec-runtimeclassname",
    "schedulerName": "kubernetes.podspec-schedulername",
    "securityContext": "kubernetes.podspec-securitycontext",
    "tolerations": "kubernetes.podspec-tolerations",
    "topologySpreadConstraints": "kubernetes.podspec-topologyspreadconstraints",
}
_WRITTEN_CLAIM: Final = "kubernetes.podspec-persistent-volume-write"
_VOLUME_FLAGS: Final[Mapping[str, str]] = {
    "emptyDir": "kubernetes.podspec-volumes-emptydir",
    "persistentVolumeClaim": "kubernetes.podspec-persistent-volume-claim",
    "csi": "kubernetes.podspec-volumes-csi",
}


def needed_flags(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return the flags of Knative's ConfigMap `config-features`, and the field that needs each."""
    predictors = [
        manifest["spec"]["predictor"]
        for manifest in manifests
        if manifest["kind"] == "InferenceService"
    ]
    return {flag: field for predictor in predictors for flag, field in _needed(predictor)}


def _needed(predictor: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((flag, field) for field, flag in _FLAGS.items() if predictor.get(field))
    for volume in predictor.get("volumes") or ():
        yield from ((flag, field) for field, flag in _VOLUME_FLAGS.items() if field in volume)
        if not volume.get("persistentVolumeClaim", {"readOnly": True}).get("readOnly"):
            yield _WRITTEN_CLAIM, "persistentVolumeClaim"
