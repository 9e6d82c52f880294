"""The baseline of a canary: pods of the stable revision, as many as the candidate has, with the same share
of the traffic. Both start together, so their times can be compared at any weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.spec.domain.scaling import FIXED
from deployments.spec.domain.serving_spec import ServingSpec

# Above, the rest of the requests is less than the candidate's share.
MOST_WEIGHT: Final = 50
ONLY_CANARY: Final = (
    "Only a canary can have a baseline: blue/green has no traffic to share, and the stable revision "
    "answers everything that a shadow gets copies of."
)


def share_at(weight: int) -> int:
    """Return the percentage of requests that the baseline gets while the candidate gets `weight`."""
    return weight if weight <= MOST_WEIGHT else 0


def problem_with(weights: Sequence[int]) -> str:
    """Say why steps of these weights cannot have a baseline. Empty when they can."""
    for number, weight in enumerate(weights, start=1):
        if MOST_WEIGHT < weight < 100:
            return (
                f"Step {number}: with {weight}% for the candidate no equal share is left for the "
                f"baseline. Use at most {MOST_WEIGHT}%, or 100%."
            )
    if weights and not any(map(share_at, weights)):
        return f"The baseline never gets traffic. Add a step of at most {MOST_WEIGHT}%, or leave it out."
    return ""


def problem_with_scaling(stable: ServingSpec, candidate: ServingSpec) -> str:
    """Say why these two revisions cannot have a baseline. Empty when they can."""
    for side, spec in (("stable revision", stable), ("candidate", candidate)):
        if spec.scaling.kind != FIXED:
            return (
                f"A baseline needs a fixed number of replicas: the {side} is scaled by "
                f"{spec.scaling.kind}, which would size the two sets differently. Leave out the "
                "baseline, or use a fixed number."
            )
    return ""
