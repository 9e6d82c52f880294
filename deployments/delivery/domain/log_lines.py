"""Lines of pods' logs: parsed, with the level that they begin with, merged by time, filtered.

Levels are read from what Triton, vLLM, SGLang, TensorRT-LLM and Python's logging write at the start of a line.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final


class LogLevel(StrEnum):
    """The level of a line. UNKNOWN: neither it nor a line before it names one."""

    UNKNOWN = ""
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def severity(self) -> int:
        return list(LogLevel).index(self)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a pod's log, without terminal colours. `at` is when the cluster received it, None if it does not say
    so.
    """

    pod: str
    text: str
    level: LogLevel = LogLevel.UNKNOWN
    at: datetime | None = None


_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))(?: |$)"
)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
# A line names its level near its start; what follows may be of any length.
_HEAD_LENGTH: Final = 300
_NAME: Final = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
_LETTER: Final = "[DIWEF]"
_PATTERNS: Final = (
    # Triton and klog: I1129 09:41:22.123456 1 server.cc:676] …
    rf"({_LETTER})\d{{4}} \d\d:\d\d:\d\d",
    # Triton with --log-format=ISO8601: 2026-11-29T09:41:22Z I 1 server.cc:676] …
    rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ ({_LETTER}) ",
    # vLLM, uvicorn, Python: (EngineCore pid=7) INFO 11-29 …; INFO:     …; WARNING:root:…; [INFO] …
    rf"(?:\([^()]{{1,60}}\) )?\[?({_NAME})\]?(?:[: ]|$)",
    # TensorRT-LLM: [TensorRT-LLM][INFO] …; [11/29/2026-09:41:22] [TRT-LLM] [W] …; gunicorn.
    rf"(?:\[[^\[\]]{{1,60}}\] ?){{1,3}}\[({_NAME}|{_LETTER})\]",
    # Python and KServe: 2026-11-29 09:41:22,123 - name - INFO - …
    rf"\[?\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d.{{0,60}}?\b({_NAME})\b",
)
_LEVELS: Final = tuple(map(re.compile, _PATTERNS))
_JSON: Final = re.compile(
    r'\{.{0,200}?"(?:level|levelname|severity)" ?: ?"(debug|info|warn(?:ing)?|error|critical|fatal)"',
    re.IGNORECASE,
)
_TRACEBACK: Final = re.compile(r"(?:\([^()]{1,60}\) )?Traceback \(most recent call last\)")
_PYTHON_WARNING: Final = re.compile(r"\S{1,200}\.py:\d+: \w*Warning: ")
_BY_LETTER: Final = {
    "D": LogLevel.DEBUG,
    "I": LogLevel.INFO,
    "W": LogLevel.WARNING,
    "E": LogLevel.ERROR,
    "F": LogLevel.ERROR,
    "C": LogLevel.ERROR,
}


def parse_log(pod: str, text: str) -> list[LogLine]:
    """Parse a log as the cluster returns it, with or without its timestamps. A line that names no level has that of
    the line before it: a traceback belongs to its error.
    """
    lines: list[LogLine] = []
    level = LogLevel.UNKNOWN
    for raw in text.removesuffix("\n").split("\n") if text else ():
        at, rest = _split_time(raw)
        content = _clean(rest)
        level = find_level(content) or level
        lines.append(LogLine(pod, content, level, at))
    return lines


def find_level(text: str) -> LogLevel:
    """Return the level that a line begins with. UNKNOWN if it names none."""
    head = text[:_HEAD_LENGTH]
    for pattern in _LEVELS:
        if match := pattern.match(head):
            return _BY_LETTER[match[1][0]]
    if match := _JSON.match(head):
        return _BY_LETTER[match[1][0].upper()]
    if _TRACEBACK.match(head):
        return LogLevel.ERROR
    return LogLevel.WARNING if _PYTHON_WARNING.match(head) else LogLevel.UNKNOWN


def merge_logs(logs: Iterable[Sequence[LogLine]]) -> list[LogLine]:
    """Merge the logs of several pods by time. Each pod's lines stay in their order, also where its clock went back; a
    line without a time stays behind the line before it.
    """
    return [line for _, line in heapq.merge(*map(_in_order, logs), key=lambda item: item[0])]


def filter_lines(
    lines: Iterable[LogLine], *, level: LogLevel = LogLevel.UNKNOWN, search: str = ""
) -> list[LogLine]:
    """Keep the lines of at least this level that contain the text, in upper or lower case."""
    pattern = _compile(search)
    return [
        line
        for line in lines
        if line.level.severity >= level.severity
        and (pattern is None or pattern.search(line.text) is not None)
    ]


def split_matches(text: str, search: str) -> list[tuple[str, bool]]:
    """Split a line into parts, each with whether it is the searched text."""
    pattern = _compile(search)
    if pattern is None:
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in pattern.finditer(text):
        parts += [(text[end : match.start()], False), (match[0], True)]
        end = match.end()
    parts.append((text[end:], False))
    return [part for part in parts if part[0]]


def shorten_names(pods: Sequence[str]) -> dict[str, str]:
    """Map the names of pods to their shortest ends that tell them apart: x2x9z of detector-r1-5d8f7-x2x9z."""
    longest = max((len(name.split("-")) for name in pods), default=1)
    for count in range(1, longest + 1):
        short = {name: "-".join(name.split("-")[-count:]) for name in pods}
        if len(set(short.values())) == len(short):
            return short
    return {name: name for name in pods}


def _split_time(raw: str) -> tuple[datetime | None, str]:
    """Split the cluster's timestamp off a line. None if it begins with none."""
    stamp = _STAMP.match(raw)
    if stamp is None:
        return None, raw
    try:
        return datetime.fromisoformat(stamp[1]).astimezone(UTC), raw[stamp.end() :]
    except (ValueError, OverflowError):
        return None, raw


def _clean(text: str) -> str:
    """Remove terminal colours, and of a progress bar all but its last state."""
    plain = _COLOUR.sub("", text).rstrip("\r")
    return plain.rpartition("\r")[2]


def _in_order(lines: Iterable[LogLine]) -> Iterator[tuple[datetime, LogLine]]:
    """Yield the lines with times that never go back."""
    last = datetime.min.replace(tzinfo=UTC)
    for line in lines:
        last = max(last, line.at or last)
        yield last, line


def _compile(search: str) -> re.Pattern[str] | None:
    return re.compile(re.escape(search), re.IGNORECASE) if search else None
