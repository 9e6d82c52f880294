"""Room for all calls of a request in one chunk of Python's stack of frames.

CPython keeps frames in chunks of 16 KiB, and gets and gives back a chunk with each call across the end of one: a loop at
just that depth, such as the rows of a table in a template, takes up to a quarter longer
(https://github.com/python/cpython/issues/142183, mended in later releases of 3.13 and 3.14). A frame that needs
more than a chunk gets one of twice the size, or four times, and so on; its callees use the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Final, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

# Of 8 bytes: just over 128 KiB, so that the chunk has 256 and the callees nearly half, some 800 frames.
_SLOTS: Final = 16_500


def with_stack_room(function: F) -> F:
    """The function itself, whose frame claims so much. Memory that no callee touches is never used."""
    plain = cast("FunctionType", function)
    plain.__code__ = plain.__code__.replace(co_stacksize=_SLOTS)
    return function
