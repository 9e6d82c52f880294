"""How far vLLM has come with its start, as its log says (lines of 0.6 to 0.11)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Describe = Callable[[re.Match[str]], str]
# In the order in which vLLM takes them. A line of tensor parallelism appears once for each GPU.
_STEPS: Final[tuple[tuple[re.Pattern[str], Describe], ...]] = (
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


def describe(log: str) -> str:
    """The last step that the log shows; empty before the first."""
    for pattern, message in reversed(_STEPS):
        matches = list(pattern.finditer(log))
        if matches:
            return message(matches[-1])
    return ""
