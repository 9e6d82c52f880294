"""The manifests of one revision, in the order in which they are pushed."""

from __future__ import annotations

from deployments.manifests.domain import (
    autoscaling,
    dependent_objects,
    inference_service,
    llm_inference_service,
    namespace,
    network,
    sglang,
    tensorrt_llm,
    triton_deployment,
    vllm,
)
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    with_digest,
)
from deployments.manifests.domain.model_files import local_model_cache
from deployments.spec.domain import serving_spec


def build_shared(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    """Return the shared objects that this revision needs in its namespace, without the Secret."""
    spec = served.spec
    manifests = [
        namespace.namespace(context),
        network.default_deny(context),
        network.pipelines(context),
        namespace.service_account(context),
    ]
    if spec.engine == serving_spec.KSERVE_TRITON:
        manifests.append(namespace.serving_runtime(context))
    if spec.engine == serving_spec.KSERVE_VLLM and spec.nodes == 1:
        manifests.append(vllm.serving_runtime(context))
    if spec.engine == serving_spec.KSERVE_SGLANG:
        manifests.append(sglang.serving_runtime(context))
    if spec.engine == serving_spec.KSERVE_TENSORRT_LLM:
        manifests.append(tensorrt_llm.serving_runtime(context))
    if spec.storage.model_cache == "cluster":
        manifests.append(local_model_cache.local_model_cache(context, served))
    return manifests


def build_own(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    """Return the objects of the revision alone, removed with it; the workload first. The digest of the workload
    covers all of them.
    """
    workload, *others = [
        *_workload(context, served),
        *dependent_objects.dependent_objects_of(context, served),
        *autoscaling.autoscaler(context, served),
    ]
    return [with_digest(workload, [workload, *others]), *others]


def _workload(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    engine = served.spec.engine
    if engine in serving_spec.KSERVE_ENGINES:
        return [inference_service.inference_service(context, served)]
    if engine == serving_spec.LLM_SERVICE:
        return [llm_inference_service.llm_inference_service(context, served)]
    return [
        triton_deployment.deployment(context, served),
        triton_deployment.service(context, served),
    ]
