"""A process renews a file while its main loop runs: a probe reads its age without starting Python."""

from __future__ import annotations

from pathlib import Path

from portal import env


def path() -> Path | None:
    """Return the path of SLIPWAY_WORKER_ALIVE_FILE. None if that is empty."""
    named = env.text("SLIPWAY_WORKER_ALIVE_FILE", "")
    return Path(named) if named else None
