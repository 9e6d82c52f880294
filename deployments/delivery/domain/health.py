"""The observed state of a deployment and its reason in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.delivery.domain.progress import WorkloadProgress
from deployments.states import DEPLOYMENT, DeploymentState

# How long after a rollout changed route or revisions a deployment that served stays ready without being confirmed.
# A gateway takes seconds to follow a route: being unready for less is no event.
GRACE_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """The facts of a deployment's health. `route_problem` is None while the gateway has not reported on the route,
    empty if it accepted.
    """

    stable: WorkloadProgress | None
    candidate: WorkloadProgress | None
    route_problem: str | None
    was_ready: bool
    is_late: bool
    is_retiring: bool = False
    is_stopped: bool = False
    # Workloads and pods that still exist.
    remaining_objects: int = 0
    # Why the cluster rejected the route: the live one, if there is one, is not what was approved.
    route_refusal: str = ""
    # Why a deployment that never served was stopped.
    start_failure: str = ""
    # A rollout that moves traffic changed the desired state less than GRACE_SECONDS ago.
    is_settling: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    state: DeploymentState
    reason: str


def assess(facts: HealthFacts, *, now: DeploymentState) -> Health:
    """Assess the health of a deployment. Returns only states to which `now` may legally change."""
    if facts.is_retiring:
        return Health(now, "is being removed")
    if facts.is_stopped and facts.remaining_objects:
        return Health(now, f"is being stopped; objects left: {facts.remaining_objects}")
    stopped = Health(DeploymentState.STOPPED, facts.start_failure)
    target = stopped if facts.is_stopped else _target(facts)
    is_unready = facts.stable is not None and not facts.stable.is_ready
    if (
        target.state == DeploymentState.PROGRESSING
        and now == DeploymentState.DEGRADED
        and is_unready
    ):
        # A failed revision that restarts stays degraded until it is ready: otherwise a crash loop
        # would alternate between the two states for ever.
        return Health(DeploymentState.DEGRADED, target.reason)
    if target.state == DeploymentState.DEGRADED and _is_flap(facts, now):
        return Health(now, target.reason)
    if target.state != now and target.state not in DEPLOYMENT[now]:
        return Health(DeploymentState.PROGRESSING, target.reason)
    return target


def _is_flap(facts: HealthFacts, now: DeploymentState) -> bool:
    """Whether a ready deployment is only not confirmed yet. What fails, or is refused, is degraded at once."""
    is_broken = bool(facts.route_refusal) or (facts.stable is not None and facts.stable.is_failing)
    return facts.is_settling and now == DeploymentState.READY and not is_broken


def _target(facts: HealthFacts) -> Health:
    stable = facts.stable
    if stable is None:
        return Health(DeploymentState.PENDING, "no revision is approved yet")
    if facts.route_refusal:
        waits = "" if stable.is_ready or not stable.message else f"; {stable.message}"
        return Health(DeploymentState.DEGRADED, f"{facts.route_refusal}{waits}")
    if not stable.is_ready:
        is_degraded = stable.is_failing or facts.was_ready or facts.is_late
        prefix = "not ready in time: " if facts.is_late and not stable.is_failing else ""
        state = DeploymentState.DEGRADED if is_degraded else DeploymentState.PROGRESSING
        return Health(state, prefix + stable.message)
    if facts.route_problem != "":
        return _without_route(facts)
    if facts.candidate is not None and facts.candidate.is_failing:
        return Health(DeploymentState.READY, f"candidate: {facts.candidate.message}")
    return Health(DeploymentState.READY, "")


def _without_route(facts: HealthFacts) -> Health:
    if facts.route_problem:
        reason = f"the gateway does not follow the route: {facts.route_problem}"
    else:
        reason = "waiting for the gateway to accept the route"
    is_degraded = facts.is_late or facts.was_ready
    return Health(DeploymentState.DEGRADED if is_degraded else DeploymentState.PROGRESSING, reason)
