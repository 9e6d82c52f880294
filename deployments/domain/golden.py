"""Golden requests: what one may hold, and what its answer means."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MOST_PER_MODEL: Final = 20
MOST_BYTES: Final = 256 * 1024


class ProbePurpose(StrEnum):
    BEFORE_TRAFFIC = "before traffic"
    PROBE = "probe"


class ProbeVerdict(StrEnum):
    """WAITING is "not known": nothing was answered yet, or it could not be asked."""

    WAITING = "waiting"
    PASSED = "pass"
    FAILED = "fail"
