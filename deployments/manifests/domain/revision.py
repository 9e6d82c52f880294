"""All manifests of one revision, in the order in which they are pushed."""

from __future__ import annotations

from deployments.manifests.domain import (
    autoscaling,
    inference_service,
    llm_inference_service,
    local_model_cache,
    namespace,
    network,
    surroundings,
    triton_deployment,
    vllm,
)
from deployments.manifests.domain.metadata import Manifest, Place, Served, with_digest
from deployments.spec.domain import serving_spec


def shared(place: Place, served: Served) -> list[Manifest]:
    """What the namespace must hold for this revision (without the Secret)."""
    spec = served.spec
    found = [
        namespace.namespace(place),
        network.default_deny(place),
        network.pipelines(place),
        namespace.service_account(place),
    ]
    if spec.engine == serving_spec.KSERVE_TRITON:
        found.append(namespace.serving_runtime(place))
    if spec.engine == serving_spec.KSERVE_VLLM and spec.nodes == 1:
        found.append(vllm.serving_runtime(place))
    if spec.storage.model_cache == "cluster":
        found.append(local_model_cache.local_model_cache(place, served))
    return found


def own(place: Place, served: Served) -> list[Manifest]:
    """What belongs to the revision alone and is removed with it; the workload first.

    The workload's digest covers all of it.
    """
    workload, *others = [
        *_workload(place, served),
        *surroundings.around(place, served),
        *autoscaling.autoscaler(place, served),
    ]
    return [with_digest(workload, [workload, *others]), *others]


def _workload(place: Place, served: Served) -> list[Manifest]:
    engine = served.spec.engine
    if engine in serving_spec.KSERVE_ENGINES:
        return [inference_service.inference_service(place, served)]
    if engine == serving_spec.LLM_SERVICE:
        return [llm_inference_service.llm_inference_service(place, served)]
    return [triton_deployment.deployment(place, served), triton_deployment.service(place, served)]
