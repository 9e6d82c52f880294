"""The messages of Triton about a model that it does not serve, without its log's prefixes and this machine's paths."""

from __future__ import annotations

import json
import re
from pathlib import Path

_MAX_LOG_BYTES = 256 * 1024
_MAX_LENGTH = 1500
# One entry of the log: level, date, thread and place in the source; texts of several lines follow it.
_ENTRY = re.compile(r'^([EWI])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] ?"?', re.MULTILINE)
# Where Triton is, which is no news about the model.
_NO_CAUSE = ("CudaDriverHelper", "creating server", "Non-graceful termination")
# The first entries that match are the cause; others repeat it.
_CAUSES = ("failed to load '", "failed to load model")
# Triton ends itself, or takes its process for Python models for dead, when that process gets no
# processor time for some seconds. No setting changes these limits.
_LOCK_WAS_LATE = "boost::interprocess::lock_exception"
_STARVED = (_LOCK_WAS_LATE, "is not healthy", "waiting for the stub process")
_OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory", "Unable to allocate")


def summarize_log(log: Path, folder: Path) -> str:
    text = _tail(log)
    errors = [entry for entry in _errors(text) if not any(part in entry for part in _NO_CAUSE)]
    causes = [e for e in errors if any(e.startswith(start) for start in _CAUSES)]
    chosen = list(dict.fromkeys(causes or errors)) or [text.strip()[-300:]]
    return tidy("; ".join(chosen), folder)


def describe_answer(body: bytes, folder: Path) -> str:
    """Describe a response other than 200."""
    try:
        text = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        text = body[:_MAX_LENGTH].decode(errors="replace")
    return tidy(text, folder)


def is_out_of_memory(text: str) -> bool:
    return any(part in text for part in _OUT_OF_MEMORY)


def is_of_a_busy_machine(log: Path, detail: str) -> bool:
    """Return whether a busy machine may be the cause. A Python model that kills its own process reads the same."""
    return any(part in detail or part in _tail(log) for part in _STARVED)


def is_never_of_the_model(log: Path) -> bool:
    return _LOCK_WAS_LATE in _tail(log)


def tidy(text: str, folder: Path) -> str:
    """Drop the load test's folder and the stack of a Python model from a message."""
    text = text.replace(f"{folder}/models/", "").replace("\\n", "\n")
    text = re.sub(r"\s+At:\s+(\S+\(\d+\): \S+\s*)+", " ", text)
    return " ".join(text.split()).strip('" ')[:_MAX_LENGTH]


def _errors(text: str) -> list[str]:
    starts = list(_ENTRY.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)] * bool(starts)
    return [
        text[start.end() : end].strip().removesuffix('"')
        for start, end in zip(starts, ends, strict=True)
        if start[1] == "E"
    ]


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - _MAX_LOG_BYTES, 0))
        return file.read().decode(errors="replace")
