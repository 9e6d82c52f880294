"""The kinds of rollout that a deployment may have, and why the others are off."""

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
    """Return why a rollout of this kind is not available. Empty if it is.

    `spec` is the candidate's if it differs from the stable one. A mirror must be known to work: with a gateway that
    ignores it the candidate would never get a request.
    """
    if kind != PlanKind.SHADOW:
        return ""
    stable = deployment.stable_revision
    specs = [each for each in (spec, rendering.spec_of(stable) if stable else None) if each]
    if any(each.scaling.kind == serving_spec.KNATIVE for each in specs):
        return _NO_HEADER
    offer = Capabilities.from_json(deployment.cluster.capabilities).offers(_SHADOW)
    return "" if offer.ok else offer.why
