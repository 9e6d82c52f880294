"""The progress of a language model server's start, as its log says: lines of vLLM 0.6 to 0.11 and of SGLang 0.5.10
to 0.5.23.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Describe = Callable[[re.Match[str]], str]
Step = tuple[re.Pattern[str], Describe]
# In the order in which the server takes them. A line of tensor parallelism appears once for each GPU.
_VLLM: Final[tuple[Step, ...]] = (
    (re.compile(r"Starting to load model"), lambda _: "loading the weights"),
    (
        re.compile(r"(?:Model loading|Loading model weights) took ([\d.]+) ?Gi?B"),
        lambda match: f"weights of {match[1]} GiB are loaded; measuring GPU memory",
    ),
    (
        re.compile(r"GPU KV cache size: ([\d,]+) tokens"),
        lambda match: f"KV cache for {match[1]} tokens; capturing CUDA graphs",
    ),
    (
        re.compile(r"Graph capturing finished in (\d+) secs"),
        lambda match: f"CUDA graphs were captured in {match[1]} s; starting the server",
    ),
)
_SGLANG: Final[tuple[Step, ...]] = (
    (re.compile(r"Load weight begin\."), lambda _: "loading the weights"),
    (
        # It writes GB for 2^30 bytes.
        re.compile(r"Load weight end\..* mem usage=([\d.]+) GB"),
        lambda match: f"weights of {match[1]} GiB are loaded; allocating the KV cache",
    ),
    (
        re.compile(r"Memory pool end\."),
        lambda _: "the KV cache is allocated; capturing CUDA graphs",
    ),
    (
        re.compile(r"Capture .*graph end\..*elapsed[:=] ?([\d.]+) s", re.IGNORECASE),
        lambda match: f"CUDA graphs were captured in {match[1]} s; starting the server",
    ),
    (
        re.compile(r"\bmax_total_num_tokens=(\d+), "),
        lambda match: f"KV cache for {int(match[1]):,} tokens; warming up",
    ),
)


def describe(log: str) -> str:
    """Describe the last step that the log shows. Empty before the first."""
    for pattern, message in (*reversed(_VLLM), *reversed(_SGLANG)):
        matches = list(pattern.finditer(log))
        if matches:
            return message(matches[-1])
    return ""
