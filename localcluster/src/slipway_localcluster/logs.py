"""Lines of a container's log, and what a request for it selects of them (PodLogOptions)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from slipway_localcluster.errors import BadRequest, Cause, Invalid
from slipway_localcluster.requests import is_true
from slipway_localcluster.rules.causes import forbidden, invalid

OPTIONS = frozenset(
    {"follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps"}
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. `at` is when it was noticed. The last line of a log may have no end yet."""

    at: datetime
    text: str


class OpenLog(Protocol):
    """The log of one run of a container."""

    def lines(self) -> Sequence[LogLine]:
        """Return all lines, also when their pod is gone."""

    def has_ended(self) -> bool:
        """Return whether nothing more is written: the pod is gone, or the container runs anew with another log."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LogOptions:
    is_followed: bool = False
    is_previous: bool = False
    has_timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


def read_options(query: Mapping[str, str], *, pod: str, now: datetime) -> LogOptions:
    """Raises BadRequest and Invalid as a real API server does."""
    tail, limit, seconds = (
        _number(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds")
    )
    since = _time(query)
    causes = [
        *_too_small("tailLines", tail, 0, "must be greater than or equal to 0"),
        *_too_small("limitBytes", limit, 1, "must be greater than 0"),
        *_too_small("sinceSeconds", seconds, 1, "must be greater than 0"),
    ]
    if since is not None and seconds is not None:
        both = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes = [*causes, forbidden("", both)]
    if causes:
        details = [f"{cause.field}: {cause.message}" for cause in causes]
        listed = details[0] if len(details) == 1 else f"[{', '.join(details)}]"
        raise Invalid(f'PodLogOptions "{pod}" is invalid: {listed}', causes=causes)
    return LogOptions(
        is_followed=is_true(query.get("follow")),
        is_previous=is_true(query.get("previous")),
        has_timestamps=is_true(query.get("timestamps")),
        tail_lines=tail,
        since=since if seconds is None else now - timedelta(seconds=seconds),
        limit_bytes=limit,
    )


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.removeprefix("-").isdecimal():
        raise BadRequest(f"{name}: not a number: {text}")
    return int(text)


def _time(query: Mapping[str, str]) -> datetime | None:
    text = query.get("sinceTime", "")
    try:
        since = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise BadRequest(f"sinceTime: not a time: {text}") from None
    return since.replace(tzinfo=since.tzinfo or UTC) if since else None


def _too_small(name: str, value: int | None, least: int, detail: str) -> list[Cause]:
    return [] if value is None or value >= least else [invalid(name, value, detail)]


class LogReader:
    """The part of a growing log that a request gets."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._read: int | None = None
        self._left = options.limit_bytes

    @property
    def is_full(self) -> bool:
        """Whether no more may be sent."""
        return self._left == 0

    def next(self, lines: Sequence[LogLine], *, is_last: bool) -> bytes:
        """Return what is new since the last call. A line without its end waits, unless nothing follows."""
        if self._read is None:
            tail = self._options.tail_lines
            self._read = 0 if tail is None else max(0, len(lines) - tail)
        end = len(lines)
        if lines and not is_last and not lines[-1].text.endswith("\n"):
            end -= 1
        new = lines[self._read : end]
        self._read = max(self._read, end)
        return self._within_limit("".join(map(self._written, filter(self._is_selected, new))))

    def _is_selected(self, line: LogLine) -> bool:
        return self._options.since is None or line.at >= self._options.since

    def _written(self, line: LogLine) -> str:
        if not self._options.has_timestamps:
            return line.text
        return f"{line.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z {line.text}"

    def _within_limit(self, text: str) -> bytes:
        data = text.encode()
        if self._left is None:
            return data
        sent = data[: self._left]
        self._left -= len(sent)
        return sent
