"""Decide the next step of reconciliation from desired and observed state. Pure; one effect per step.

The order is what makes it safe. The route is corrected before anything is removed, so that nothing is
removed while requests reach it, and before anything new is pushed, so that an abort reaches the
gateway even when the candidate cannot be pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ReconcileStep(StrEnum):
    NONE = "none"
    PUSH_REVISION = "push revision"
    PUSH_ROUTE = "push route"
    DELETE_ROUTE = "delete route"
    DELETE_REVISION = "delete revision"
    PRUNE = "prune"
    FINISH_RETIRING = "finish retiring"


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state. `digests` are those of the workloads by revision number; `weights` are in percent by
    Service name, without zeros.

    `mirrors` is likewise the percent of requests copied to a Service; `paths` are those that the route carries.
    """

    digests: Mapping[int, str]
    weights: Mapping[str, int]
    is_retiring: bool
    # Nothing runs and nothing answers, but it may start again.
    is_stopped: bool = False
    mirrors: Mapping[str, int] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()
    # The state of the callers' keys; empty where the address is open.
    keys: str = ""


@dataclass(frozen=True, slots=True)
class ObservedDeployment:
    """The observed state. `digests` are by revision number, of all workloads with the deployment's label, desired
    or not, except those that are terminating: `has_terminating` is set for those.

    `drifted` are the revisions whose drift is to be reverted. `has_orphans` means that objects exist that no
    manifest names.
    """

    digests: Mapping[int, str]
    weights: Mapping[str, int] | None
    has_terminating: bool = False
    drifted: frozenset[int] = frozenset()
    is_route_drifted: bool = False
    has_orphans: bool = False
    mirrors: Mapping[str, int] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()
    keys: str = ""


@dataclass(frozen=True, slots=True)
class NextStep:
    step: ReconcileStep
    revision_number: int = 0


def decide(desired: Desired, observed: ObservedDeployment) -> NextStep:
    if desired.is_retiring or desired.is_stopped:
        return _decide_removal(desired, observed)
    is_route_wrong = (desired.weights, desired.mirrors, desired.paths, desired.keys) != (
        observed.weights,
        observed.mirrors,
        observed.paths,
        observed.keys,
    )
    if is_route_wrong and observed.weights is not None:
        return NextStep(ReconcileStep.PUSH_ROUTE)
    for number, digest in sorted(desired.digests.items()):
        if observed.digests.get(number) != digest or number in observed.drifted:
            return NextStep(ReconcileStep.PUSH_REVISION, number)
    if (is_route_wrong or observed.is_route_drifted) and desired.weights:
        return NextStep(ReconcileStep.PUSH_ROUTE)
    return _decide_cleanup(desired, observed)


def _decide_cleanup(desired: Desired, observed: ObservedDeployment) -> NextStep:
    for number in sorted(observed.digests):
        if number not in desired.digests:
            return NextStep(ReconcileStep.DELETE_REVISION, number)
    return NextStep(ReconcileStep.PRUNE if observed.has_orphans else ReconcileStep.NONE)


def _decide_removal(desired: Desired, observed: ObservedDeployment) -> NextStep:
    if observed.weights is not None:
        return NextStep(ReconcileStep.DELETE_ROUTE)
    for number in sorted(observed.digests):
        return NextStep(ReconcileStep.DELETE_REVISION, number)
    if observed.has_orphans:
        return NextStep(ReconcileStep.PRUNE)
    is_removed = desired.is_retiring and not observed.has_terminating
    return NextStep(ReconcileStep.FINISH_RETIRING if is_removed else ReconcileStep.NONE)
