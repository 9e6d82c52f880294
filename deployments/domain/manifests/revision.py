"""All manifests of one revision, in the order in which they are pushed."""

from __future__ import annotations

from deployments.domain import specs
from deployments.domain.manifests import kserve, team, triton
from deployments.domain.manifests.parts import Manifest, Place, Served


def shared(place: Place, served: Served) -> list[Manifest]:
    """What the namespace must hold for this revision (without the Secret)."""
    found = [team.namespace(place), team.service_account(place)]
    if served.spec.engine == specs.KSERVE_TRITON:
        found.append(team.serving_runtime(place))
    return found


def own(place: Place, served: Served) -> list[Manifest]:
    """What belongs to the revision alone and is removed with it; the workload first."""
    if served.spec.engine == specs.KSERVE_TRITON:
        return [kserve.inference_service(place, served)]
    return [
        triton.deployment(place, served),
        triton.service(place, served),
        triton.disruption_budget(place, served),
    ]
