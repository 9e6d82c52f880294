"""Web of a portal that is not the one under test: another version, or an installed wheel."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.benchmarks import waiting


def start(
    parts: ExitStack,
    folder: Path,
    environment: dict[str, str],
    log: Path,
    *,
    python: Path = Path(sys.executable),
) -> str:
    """Return its address once it answers. `folder` is where it runs; `parts` ends it."""
    port = free_ports.take_one()
    command = [
        *(str(python), "-m", "gunicorn", "portal.wsgi:application", "--no-control-socket"),
        *("--worker-class", "gthread", "--workers", "1", "--threads", "4"),
        *("--bind", f"127.0.0.1:{port}"),
    ]
    output = parts.enter_context(log.open("w"))
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
    )
    parts.callback(process.wait, 60)
    parts.callback(process.terminate)
    address = f"http://127.0.0.1:{port}"
    waiting.until(
        lambda: plain_http.client.get(f"{address}/sign-in").is_success, seconds=300, log=log
    )
    return address
