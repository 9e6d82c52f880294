"""What to do next so that the cluster becomes what is wanted: pure, one effect per look.

The order is the safety: the route is brought right before anything is removed, so that nothing is
removed while requests go to it, and before anything new is pushed, so that an abort reaches the
gateway even when the candidate cannot be pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Step(StrEnum):
    NONE = "none"
    PUSH_REVISION = "push revision"
    PUSH_ROUTE = "push route"
    DELETE_ROUTE = "delete route"
    DELETE_REVISION = "delete revision"
    PRUNE = "prune"
    FINISH_RETIRING = "finish retiring"


@dataclass(frozen=True, slots=True)
class Wanted:
    """`digests` of the workloads by revision number; `weights` by service name, zeros left out, and
    so `mirrors`: the share of requests that are copied to it; `paths` as the route carries them.
    """

    digests: Mapping[int, str]
    weights: Mapping[str, int]
    is_retiring: bool
    # Nothing shall run and nothing answer, but it may start again.
    is_stopped: bool = False
    mirrors: Mapping[str, int] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seen:
    """`digests` by revision number of what carries the deployment's label, wanted or not; what the
    cluster is already removing is left out, and `is_going` says that there is some. `edited` is what
    others changed and shall be put right; `has_strays`, that something is there that nothing wants.
    """

    digests: Mapping[int, str]
    weights: Mapping[str, int] | None
    is_going: bool = False
    edited: frozenset[int] = frozenset()
    is_route_edited: bool = False
    has_strays: bool = False
    mirrors: Mapping[str, int] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Next:
    step: Step
    revision_number: int = 0


def decide(wanted: Wanted, seen: Seen) -> Next:
    if wanted.is_retiring or wanted.is_stopped:
        return _decide_removing(wanted, seen)
    is_route_wrong = (wanted.weights, wanted.mirrors, wanted.paths) != (
        seen.weights,
        seen.mirrors,
        seen.paths,
    )
    if is_route_wrong and seen.weights is not None:
        return Next(Step.PUSH_ROUTE)
    for number, digest in sorted(wanted.digests.items()):
        if seen.digests.get(number) != digest or number in seen.edited:
            return Next(Step.PUSH_REVISION, number)
    if (is_route_wrong or seen.is_route_edited) and wanted.weights:
        return Next(Step.PUSH_ROUTE)
    return _decide_leftovers(wanted, seen)


def _decide_leftovers(wanted: Wanted, seen: Seen) -> Next:
    for number in sorted(seen.digests):
        if number not in wanted.digests:
            return Next(Step.DELETE_REVISION, number)
    return Next(Step.PRUNE if seen.has_strays else Step.NONE)


def _decide_removing(wanted: Wanted, seen: Seen) -> Next:
    if seen.weights is not None:
        return Next(Step.DELETE_ROUTE)
    for number in sorted(seen.digests):
        return Next(Step.DELETE_REVISION, number)
    if seen.has_strays:
        return Next(Step.PRUNE)
    is_over = wanted.is_retiring and not seen.is_going
    return Next(Step.FINISH_RETIRING if is_over else Step.NONE)
