"""The time that a candidate's pods are left to warm up when the plan does not say."""

from __future__ import annotations

from typing import Final

# For a deployment whose starts are not known.
DEFAULT_WARMUP_SECONDS: Final = 120
_LEAST: Final = 30
_MOST: Final = 600


def from_start(load_seconds: int | None) -> int:
    """Return the warm-up in seconds: as long as the model server usually takes to load the model, because what
    it prepares then, it goes on to prepare at the first requests. Between 30 s and 600 s; 120 s if the load
    time is not known.
    """
    if not load_seconds:
        return DEFAULT_WARMUP_SECONDS
    return min(_MOST, max(_LEAST, load_seconds))
