"""What to do next so that the cluster becomes what is wanted: pure, one effect per look.

The order is the safety: the route is brought right before anything is removed, so that nothing is
removed while requests go to it, and before anything new is pushed, so that an abort reaches the
gateway even when the candidate cannot be pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    NONE = "none"
    PUSH_REVISION = "push revision"
    PUSH_ROUTE = "push route"
    DELETE_ROUTE = "delete route"
    DELETE_REVISION = "delete revision"
    FINISH_RETIRING = "finish retiring"


@dataclass(frozen=True, slots=True)
class Wanted:
    """`digests` of the workloads by revision number; `weights` by service name, zeros left out."""

    digests: Mapping[int, str]
    weights: Mapping[str, int]
    is_retiring: bool
    # Nothing shall run and nothing answer, but it may start again.
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """`digests` by revision number of what carries the deployment's label, wanted or not; what the
    cluster is already removing is left out, and `is_going` says that there is some.
    """

    digests: Mapping[int, str]
    weights: Mapping[str, int] | None
    is_going: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    step: Step
    revision_number: int = 0


def decide(wanted: Wanted, seen: Seen) -> Next:
    if wanted.is_retiring or wanted.is_stopped:
        return _decide_removing(wanted, seen)
    is_route_wrong = wanted.weights != seen.weights
    if is_route_wrong and seen.weights is not None:
        return Next(Step.PUSH_ROUTE)
    for number, digest in sorted(wanted.digests.items()):
        if seen.digests.get(number) != digest:
            return Next(Step.PUSH_REVISION, number)
    if is_route_wrong and wanted.weights:
        return Next(Step.PUSH_ROUTE)
    for number in sorted(seen.digests):
        if number not in wanted.digests:
            return Next(Step.DELETE_REVISION, number)
    return Next(Step.NONE)


def _decide_removing(wanted: Wanted, seen: Seen) -> Next:
    if seen.weights is not None:
        return Next(Step.DELETE_ROUTE)
    for number in sorted(seen.digests):
        return Next(Step.DELETE_REVISION, number)
    is_over = wanted.is_retiring and not seen.is_going
    return Next(Step.FINISH_RETIRING if is_over else Step.NONE)
