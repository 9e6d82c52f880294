"""All manifests of one revision, in the order in which they are pushed."""

from __future__ import annotations

from deployments.domain import specs
from deployments.domain.manifests import (
    cache,
    guards,
    kserve,
    llm_service,
    scaling,
    team,
    triton,
    vllm,
)
from deployments.domain.manifests.parts import Manifest, Place, Served, with_digest


def shared(place: Place, served: Served) -> list[Manifest]:
    """What the namespace must hold for this revision (without the Secret)."""
    spec = served.spec
    found = [team.namespace(place), team.service_account(place)]
    if spec.engine == specs.KSERVE_TRITON:
        found.append(team.serving_runtime(place))
    if spec.engine == specs.KSERVE_VLLM and spec.nodes == 1:
        found.append(vllm.serving_runtime(place))
    if spec.storage.model_cache == "cluster":
        found.append(cache.local_model_cache(place, served))
    return found


def own(place: Place, served: Served) -> list[Manifest]:
    """What belongs to the revision alone and is removed with it; the workload first.

    The workload tells by its digest whether all of it is as wanted; in the first schema, whether
    the workload itself is.
    """
    workload, *others = [
        *_workload(place, served),
        *guards.around(place, served),
        *scaling.autoscaler(place, served),
    ]
    content = workload if served.spec.is_first_schema else [workload, *others]
    return [with_digest(workload, content), *others]


def _workload(place: Place, served: Served) -> list[Manifest]:
    engine = served.spec.engine
    if engine in specs.KSERVE_ENGINES:
        return [kserve.inference_service(place, served)]
    if engine == specs.LLM_SERVICE:
        return [llm_service.llm_inference_service(place, served)]
    return [triton.deployment(place, served), triton.service(place, served)]
