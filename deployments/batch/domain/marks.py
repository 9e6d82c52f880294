"""The mark that a worker writes when it has finished a chunk. It comes from a pod that runs the model's code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from deployments.batch.domain.observation import short

MAX_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class ChunkMark:
    failed_rows: int
    error: str


def parse(body: bytes, *, rows: int) -> ChunkMark | None:
    """Parse a mark. None if it does not say that exactly the rows of the chunk were written."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    counted, failed = _count(content.get("rows")), _count(content.get("failed"))
    if counted != rows or failed is None or not 0 <= failed <= rows:
        return None
    return ChunkMark(
        failed_rows=failed, error=short(str(content.get("error") or "")) if failed else ""
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
