"""Calls at no depth of a request get and give back memory each time."""

from __future__ import annotations

import resource
from collections.abc import Callable

from portal.monitoring.exposition.middleware import MetricsMiddleware
from portal.stack_room import with_stack_room

_CALLS, _DEPTHS = 200, range(0, 400, 2)


def _leaf(a: int, b: int, c: int) -> int:
    return a + b + c


def _faults(depth: int) -> int:
    """Pages of memory that came into use in some calls at that depth."""
    if depth:
        return _faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(_CALLS):
        _leaf(1, 2, 3)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def _worst(call: Callable[[int], int]) -> int:
    return max(call(depth) for depth in _DEPTHS)


@with_stack_room
def _roomy(depth: int) -> int:
    return _faults(depth)


def test_no_depth_needs_new_memory_for_each_call() -> None:
    _worst(_roomy)

    assert _worst(_roomy) < _CALLS / 10


def test_every_request_has_it() -> None:
    assert MetricsMiddleware.__call__.__code__.co_stacksize == _roomy.__code__.co_stacksize


def test_the_function_does_what_it_did() -> None:
    @with_stack_room
    def product(a: int, *others: int, scale: int = 2) -> int:
        return a * sum(others) * scale

    assert product(2, 3, 4) == 28
    assert product(2, 3, 4, scale=1) == 14
