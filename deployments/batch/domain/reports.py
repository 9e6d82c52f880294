"""Reports of queue workers on their work, and their sum. They come from pods that run the model's code."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from deployments.batch.domain.observation import short

# An error has 500 characters, of up to 12 bytes each in JSON.
MAX_BYTES: Final = 8192
_MOST: Final = 10**9
_MAX_PART: Final = 9_999_999


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a queue worker. `part` has `rows` answers; None means that no part was written. `waiting` None
    means that the queue cannot say.
    """

    answered: int
    dead: int
    retried: int
    waiting: int | None
    part: int | None
    rows: int
    error: str


@dataclass(frozen=True, slots=True)
class Drained:
    """The progress of a queue. `reports` is the number of the next one to read, `signed` what it was when addresses
    were last signed.

    `dead_before` are dead letters before the last start. `waiting` is as a worker reported it at `waiting_at`
    (ISO). `adopted` are parts that were found without a report: workers read them, because their messages may come
    again.
    """

    reports: int = 0
    signed: int = 0
    next_part: int = 0
    retried: int = 0
    dead_before: int = 0
    waiting: int | None = None
    waiting_at: str = ""
    adopted: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        stored = asdict(self)
        # A portal of the version before does not know it.
        return stored if self.adopted else {k: v for k, v in stored.items() if k != "adopted"}


def read_drained(column: dict[str, Any] | None) -> Drained:
    stored = dict(column or {})
    return Drained(**{**stored, "adopted": tuple(stored.get("adopted", ()))})


def restart_progress(column: dict[str, Any] | None, dead: int) -> dict[str, Any]:
    """Return the progress for a new start: the `dead` letters before it do not count against the error limit."""
    return replace(read_drained(column), dead_before=dead).to_json()


def parse(body: bytes) -> Report | None:
    """Parse a report. None if no worker writes such a report."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    counts = [_count(content.get(name)) for name in ("answered", "dead", "retried", "rows")]
    waiting, part = content.get("waiting"), content.get("part")
    known = [
        _count(waiting) is not None or waiting is None,
        _count(part) is not None or part is None,
    ]
    if None in counts or not all(known) or (part or 0) > _MAX_PART:
        return None
    answered, dead, retried, rows = (count or 0 for count in counts)
    return Report(
        answered=answered,
        dead=dead,
        retried=retried,
        waiting=waiting,
        part=part,
        rows=rows,
        error=short(str(content.get("error") or "")) if dead else "",
    )


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST else None
