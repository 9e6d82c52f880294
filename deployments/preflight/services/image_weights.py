"""Check that the cluster starts pods whose weights are in an image (oci://)."""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain import vllm
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.preflight.domain.checks import Check
from fleet.clusters.domain.capabilities import Capabilities, Feature, describe_feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.clusters.domain.serving_policy import RESTRICTED

NAME: Final = "Weights in an image"
_FEATURE: Final = "image-weights"
_FIX: Final = (
    "Use weights on a volume (pvc://) or at Hugging Face. Or ask a platform admin to let KServe mount "
    "images (0.20 or newer: ociModelMode native under storageInitializer in ConfigMap "
    "inferenceservice-config of kserve), or to set Pod Security to baseline under Admin, Clusters, "
    "Serving."
)


def check(
    context: ManifestContext, served: ServedRevision, capabilities: Capabilities, *, cluster: str
) -> list[Check]:
    llm = served.spec.llm
    is_image = llm is not None and vllm.weights_uri(served, llm).startswith("oci://")
    if context.is_local_cluster or not is_image:
        return []
    feature = capabilities.feature(_FEATURE)
    if not feature.is_there:
        fix = "" if feature.is_there is None else FEATURE_DESCRIPTIONS[_FEATURE].install
        return [
            Check(NAME, ok=feature.is_there, detail=describe_feature(_FEATURE, feature), fix=fix)
        ]
    return [_check_admission(context, feature, cluster)]


def _check_admission(context: ManifestContext, feature: Feature, cluster: str) -> Check:
    """Check that Pod Security admits the image, which KServe starts as a container without a security context,
    unless it mounts it.
    """
    if feature.version == "native":
        return Check(NAME, ok=True, detail=f"KServe on {cluster} mounts the image.")
    if context.pod_security != RESTRICTED:
        return Check(
            NAME, ok=True, detail=f"KServe on {cluster} starts a container from the image."
        )
    detail = (
        f"Namespaces on {cluster} enforce Pod Security restricted, which refuses the container that "
        "KServe starts from the image."
    )
    return Check(NAME, ok=False, detail=detail, fix=_FIX)
