"""Checks of one value of a spec that bounds and patterns cannot state. They raise ValueError."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from deployments.spec.domain import model_names

# More than any machine has; the largest node of a cluster is checked against the cluster.
MAX_CORES: Final = 1024
MAX_GIB: Final = 32 * 1024
_CPU = re.compile(r"[1-9][0-9]{0,6}m?")
_MEMORY = re.compile(r"[1-9][0-9]{0,7}(Mi|Gi)")


def check_cpu(text: str) -> str:
    """Whole cores or millicores."""
    if _CPU.fullmatch(text) is None:
        raise ValueError("not an amount of CPU")
    millicores = int(text[:-1]) if text.endswith("m") else int(text) * 1000
    if millicores > MAX_CORES * 1000:
        raise ValueError("more cores than any machine has")
    return text


def check_memory(text: str) -> str:
    if _MEMORY.fullmatch(text) is None:
        raise ValueError("not an amount of memory")
    mib = int(text[:-2]) * (1024 if text.endswith("Gi") else 1)
    if mib > MAX_GIB * 1024:
        raise ValueError("more memory than any machine has")
    return text


def check_optional_memory(text: str) -> str:
    return text and check_memory(text)


def check_model_name(text: str) -> str:
    problem = model_names.model_name_problem(text)
    if problem:
        raise ValueError(problem)
    return text


def check_timezone(name: str) -> str:
    if not _is_timezone(name):
        raise ValueError("not an IANA time zone")
    return name


def check_tensor_parallel(count: int) -> int:
    if count not in (1, 2, 4, 8, 16):
        raise ValueError("not a power of two up to 16")
    return count


def check_context_length(tokens: int) -> int:
    if tokens and not 128 <= tokens <= 2_000_000:
        raise ValueError("not a context length")
    return tokens


def check_batch_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if len(sizes) > 8 or not all(1 <= size <= 4096 for size in sizes):
        raise ValueError("not batch sizes")
    return sizes


def sorted_pairs(env: Any) -> Any:
    """A mapping of names to values, or pairs of them, as pairs sorted by name."""
    if isinstance(env, Mapping):
        return tuple(sorted((str(name), str(value)) for name, value in env.items()))
    if isinstance(env, tuple):
        return tuple(sorted(env))
    raise ValueError("not a mapping")


@cache
def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
