"""Which kinds of rollout a deployment may have, and why the others are off."""

from __future__ import annotations

from typing import Final

from deployments.manifests.selectors import rendering
from deployments.models import Deployment
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities

_SHADOW: Final = "shadow"
_NO_HEADER: Final = (
    "A shadow is not available with Knative scaling: Knative picks the revision from a request "
    "header, and a mirrored request keeps the header of stable."
)


def why_not(deployment: Deployment, kind: str, *, spec: ServingSpec | None = None) -> str:
    """Empty when it is offered. `spec` is the candidate's where it is not that of stable.

    A mirror must be known to work: a gateway that ignores it would show a candidate without any
    requests, for ever.
    """
    if kind != PlanKind.SHADOW:
        return ""
    stable = deployment.stable_revision
    wanted = [spec, rendering.spec_of(stable) if stable else None]
    if any(one is not None and one.scaling.kind == serving_spec.KNATIVE for one in wanted):
        return _NO_HEADER
    offer = Capabilities.from_json(deployment.cluster.capabilities).offers(_SHADOW)
    return "" if offer.ok else offer.why
