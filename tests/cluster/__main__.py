"""`make test-cluster [ARGS=…]`: build and start the cluster, run the tests on it, report.

Without Go modules nothing is run, and the exit status is 0: the message says why.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster import build, report
from tests.cluster.go_toolchain import Unavailable
from tests.cluster.keda.artifact import KEDA
from tests.cluster.kueue.artifact import KUEUE
from tests.cluster.running import Cluster, running

_TESTS = ("tests/cluster", "tests/contract")


def main() -> int:
    started = time.monotonic()
    try:
        control_plane, *releases = build.build_all(
            (build.CONTROL_PLANE, build.KSERVE),
            optional=(build.HELM, *build.OLDER_KSERVE, KEDA, KUEUE),
        )
    except Unavailable as error:
        print(f"The tests on a real control plane are SKIPPED. {error}")
        return 0
    with running(control_plane, releases[0]) as cluster:
        print(f"The cluster is ready after {time.monotonic() - started:.0f} s.", flush=True)
        journeys = cluster.control_plane.folder / "journeys"
        status = _run_tests(cluster, journeys, sys.argv[1:] or list(_TESTS))
        if status:
            print(cluster.control_plane.logs())
        print(report.describe(cluster, [control_plane, *releases], journeys))
    print(f"{'FAILED' if status else 'Passed'} after {time.monotonic() - started:.0f} s.")
    return status


def _run_tests(cluster: Cluster, journeys: Path, arguments: list[str]) -> int:
    environment = {
        **os.environ,
        "SLIPWAY_TEST_KUBECONFIG": str(cluster.portal),
        "SLIPWAY_TEST_ADMIN_KUBECONFIG": str(cluster.control_plane.admin),
        "SLIPWAY_TEST_JOURNEYS": str(journeys),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--durations=5", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
