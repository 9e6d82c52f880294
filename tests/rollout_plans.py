"""Settings of a plan for tests that are not about them."""

from __future__ import annotations

from typing import Any, Final

# Judged from the first request on, and over when it is promoted.
AT_ONCE: Final[dict[str, Any]] = {"warmup_seconds": 0, "watch_seconds": 0}
