"""The end of the programs of batch pods, with an exit code and a termination message: a part of them (program.py)."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from deployments.batch.domain.worker_store import MESSAGE_BYTES


def run_and_exit(work: Callable[[list[str], Path], tuple[int, str]]) -> None:
    """Run `work` with Triton's command line and an empty folder; it returns its exit code and why."""
    with tempfile.TemporaryDirectory() as name:
        code, detail = work(sys.argv[2:], Path(name))
    Path(sys.argv[1]).write_text(json.dumps({"code": code, "detail": detail})[:MESSAGE_BYTES])
    sys.exit(code)
