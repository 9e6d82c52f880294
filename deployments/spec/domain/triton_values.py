"""Checks of single values of Triton's settings, and what their texts stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypedDict

MAX_PAIRS: Final = 16
# As many as a model may have.
MAX_GOLDEN: Final = 20
_MAX_GPUS: Final = 16


class _Bounds(TypedDict):
    longest_item: int


# What REST states of a list of pairs.
PAIRS: Final[_Bounds] = {"longest_item": 300}
MAX_LEVELS: Final = 64
_MAX_VALUE: Final = 1_000_000_000
_NAME: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9_.]{0,62}")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,5}")
_SHAPE: Final = re.compile(r"[1-9][0-9]{0,6}(x[1-9][0-9]{0,6}){0,7}")
# Backend -> parameters that only tune it. Others name files, libraries or what the version defines.
PARAMETERS_OF: Final = {
    "onnxruntime": frozenset(
        {
            "arena_extend_strategy",
            "cudnn_conv_algo_search",
            "cudnn_conv_use_max_workspace",
            "do_copy_in_default_stream",
            "enable_mem_arena",
            "enable_mem_pattern",
            "execution_mode",
            "gpu_mem_limit",
            "inter_op_thread_count",
            "intra_op_thread_count",
            "memory.enable_memory_arena_shrinkage",
        }
    ),
    "pytorch": frozenset(
        {
            "DISABLE_CUDNN",
            "DISABLE_OPTIMIZED_EXECUTION",
            "ENABLE_CACHE_CLEANING",
            "ENABLE_JIT_EXECUTOR",
            "ENABLE_JIT_PROFILING",
            "ENABLE_TENSOR_FUSER",
            "ENABLE_WEIGHT_SHARING",
            "INFERENCE_MODE",
            "INTER_OP_THREAD_COUNT",
            "INTRA_OP_THREAD_COUNT",
        }
    ),
    "tensorrt": frozenset({"execution_context_allocation_strategy"}),
    "openvino": frozenset(
        {
            "COMPILATION_NUM_THREADS",
            "HINT_BF16",
            "INFERENCE_NUM_THREADS",
            "NUM_STREAMS",
            "PERFORMANCE_HINT",
        }
    ),
    "fil": frozenset(
        {"chunk_size", "layout", "transfer_threshold", "use_experimental_optimizations"}
    ),
}
PARAMETERS: Final = frozenset().union(*PARAMETERS_OF.values())


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """Read pairs: "a=b" as a to b. The last "=" separates, because names of tensors may contain one."""
    pairs = (text.rpartition("=") for text in texts)
    return {name: value for name, _, value in pairs}


def dims_of(shape: str) -> tuple[int, ...]:
    return tuple(int(part) for part in shape.split("x"))


def check_pairs(texts: tuple[str, ...]) -> tuple[str, ...]:
    pairs = pairs_of(texts)
    is_valid = all("=" in text and "," not in text and text == text.strip() for text in texts)
    is_complete = all(name and value for name, value in pairs.items())
    if not is_valid or not is_complete or not len(pairs) == len(texts) <= MAX_PAIRS:
        raise ValueError("not pairs")
    return texts


def check_resources(texts: tuple[str, ...]) -> tuple[str, ...]:
    pairs = pairs_of(check_pairs(texts))
    if not all(_NAME.fullmatch(name) and _COUNT.fullmatch(value) for name, value in pairs.items()):
        raise ValueError("not resources")
    return tuple(sorted(texts))


def check_shapes(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_SHAPE.fullmatch(value) for value in pairs_of(check_pairs(texts)).values()):
        raise ValueError("not shapes")
    return texts


def check_parameters(texts: tuple[str, ...]) -> tuple[str, ...]:
    pairs = pairs_of(check_pairs(texts))
    if not all(name in PARAMETERS and value.isprintable() for name, value in pairs.items()):
        raise ValueError("not a parameter that tunes a backend")
    return tuple(sorted(texts))


def check_tags(texts: tuple[str, ...]) -> tuple[str, ...]:
    pairs = pairs_of(check_pairs(texts))
    if not all(_LABEL.fullmatch(name) and value.isprintable() for name, value in pairs.items()):
        raise ValueError("not metric tags")
    return tuple(sorted(texts))


def check_batch_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    is_valid = len(sizes) <= 8 and all(1 <= size <= 4096 for size in sizes)
    if not is_valid or len(set(sizes)) < len(sizes):
        raise ValueError("not batch sizes")
    return tuple(sorted(sizes))


def check_golden_ids(keys: tuple[int, ...]) -> tuple[int, ...]:
    is_valid = len(keys) <= MAX_GOLDEN and all(1 <= key < 2**63 for key in keys)
    if not is_valid or len(set(keys)) < len(keys):
        raise ValueError("not ids of golden requests")
    return tuple(sorted(keys))


def check_level_values(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(values) > MAX_LEVELS or not all(0 <= value <= _MAX_VALUE for value in values):
        raise ValueError("not one value for each level")
    return values


def check_gpu_indices(indices: tuple[int, ...]) -> tuple[int, ...]:
    is_valid = all(0 <= index < _MAX_GPUS for index in indices)
    if not is_valid or len(set(indices)) < len(indices):
        raise ValueError("not GPU indices")
    return tuple(sorted(indices))


def check_versions(versions: tuple[int, ...]) -> tuple[int, ...]:
    is_valid = len(versions) <= 16 and all(1 <= version <= _MAX_VALUE for version in versions)
    if not is_valid or len(set(versions)) < len(versions):
        raise ValueError("not version directories")
    return tuple(sorted(versions))
