"""Settings of a plan for tests that are not about them."""

from __future__ import annotations

from typing import Any, Final

# Judged from the first request on, and over when it is promoted.
AT_ONCE: Final[dict[str, Any]] = {"warmup_seconds": 0, "watch_seconds": 0}

# On what servers count themselves: the tests' cluster has no gateway that counts lost requests.
OF_SERVERS: Final[list[dict[str, Any]]] = [
    {"metric": "error_rate", "max_ratio": 1.25},
    {"metric": "latency_mean", "max_ratio": 1.25},
]
