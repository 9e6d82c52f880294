"""Which kinds of rollout a deployment may have, and why the others are off."""

from __future__ import annotations

from typing import Final

from deployments.domain import specs
from deployments.domain.rollout_plans import PlanKind
from deployments.domain.specs import ServingSpec
from deployments.models import Deployment
from deployments.selectors import plans
from fleet.domain.capabilities import Capabilities

_SHADOW: Final = "shadow"
_NO_HEADER: Final = (
    "Knative is told by a header of the request which revision it is for, and a copy of a request "
    "keeps the header of stable: no shadow of what Knative scales."
)


def why_not(deployment: Deployment, kind: str, *, spec: ServingSpec | None = None) -> str:
    """Empty when it is offered. `spec` is the candidate's where it is not that of stable.

    A mirror must be known to work: a gateway that ignores it would show a candidate without any
    requests, for ever.
    """
    if kind != PlanKind.SHADOW:
        return ""
    stable = deployment.stable_revision
    wanted = [spec, plans.spec_of(stable) if stable else None]
    if any(one is not None and one.scaling.kind == specs.KNATIVE for one in wanted):
        return _NO_HEADER
    offer = Capabilities.from_json(deployment.cluster.capabilities).offers(_SHADOW)
    return "" if offer.ok else offer.why
