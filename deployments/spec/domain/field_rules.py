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
_MAX_ADAPTERS: Final = 8
_ADAPTER = re.compile(
    r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}=[A-Za-z0-9][-A-Za-z0-9_.]{0,95}/[A-Za-z0-9][-A-Za-z0-9_.]{0,95}"
)
_MEMORY = re.compile(r"[1-9][0-9]{0,7}(Mi|Gi)")


def check_cpu(text: str) -> str:
    """Check that the text is whole cores or millicores. Raises ValueError."""
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


def check_gpus_of_a_node(count: int) -> int:
    if count not in (1, 2, 4, 8, 16):
        raise ValueError("not a power of two up to 16")
    return count


def check_context_length(tokens: int) -> int:
    if tokens and not 128 <= tokens <= 2_000_000:
        raise ValueError("not a context length")
    return tokens


def check_static_fraction(fraction: float) -> float:
    if fraction and not 0.1 <= fraction <= 0.98:
        raise ValueError("not a fraction of the memory")
    return fraction


def check_tokens_per_step(tokens: int) -> int:
    if tokens and not 128 <= tokens <= 131_072:
        raise ValueError("not a number of tokens of one step")
    return tokens


def check_termination_grace(seconds: int) -> int:
    """Check the termination grace in seconds. 0 stands in specs that were stored before it was a setting.
    Raises ValueError.
    """
    if seconds and not 20 <= seconds <= 3600:
        raise ValueError("not a termination grace")
    return seconds


def check_lora_adapters(text: str) -> str:
    adapters = split_list(text)
    names = {adapter.partition("=")[0] for adapter in adapters}
    is_valid = all(_ADAPTER.fullmatch(adapter) for adapter in adapters)
    if not is_valid or len(adapters) > _MAX_ADAPTERS or len(names) < len(adapters):
        raise ValueError("not LoRA adapters")
    return ", ".join(adapters)


def check_lora_rank(rank: int) -> int:
    """Check that vLLM has kernels for the rank. Raises ValueError."""
    if rank not in (8, 16, 32, 64, 128, 256, 320, 512):
        raise ValueError("not a rank")
    return rank


def split_list(text: str) -> list[str]:
    """Return the parts between commas, without spaces around them and without empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def sorted_pairs(env: Any) -> Any:
    """Return a mapping of names to values, or pairs of them, as pairs sorted by name."""
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
