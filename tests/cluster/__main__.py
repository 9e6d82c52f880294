"""`make test-cluster [ARGS=…]`: build and start the cluster, run the tests on it, report.

Without Go modules nothing is run, and the exit status is 0: the message says why. Where they can be had, something is run or
the exit status is 1: without the time to build Kubernetes, what the API server of custom kinds alone can prove.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import build, custom_kinds, report
from tests.cluster.build import Build
from tests.cluster.go_toolchain import NotInTime, Unavailable
from tests.cluster.keda.artifact import KEDA
from tests.cluster.kueue.artifact import KUEUE
from tests.cluster.running import Cluster, running

_TESTS = ("tests/cluster", "tests/contract")
_NEEDED = (build.CONTROL_PLANE, build.KSERVE)
# What proves most first.
_OPTIONAL = (build.HELM, KEDA, KUEUE, *build.OLDER_KSERVE)
_SMALLER = (custom_kinds.SERVER, custom_kinds.SCHEMAS)


def main() -> int:
    started = time.monotonic()
    smaller: Sequence[Build] = ()
    try:
        if any(build.cached(artifact) is None for artifact in _NEEDED):
            smaller = build.build_all(_SMALLER, least_minutes=custom_kinds.LEAST_MINUTES)
        builds = build.build_all(_NEEDED, optional=_OPTIONAL)
    except Unavailable as error:
        print(f"The tests on a real control plane are SKIPPED. {error}")
        return 0
    except NotInTime as error:
        if not smaller:
            print(f"FAILED: no API server was built. {error}")
            return 1
        print(f"Kubernetes is NOT RUN, custom kinds alone are. {error}", flush=True)
        status = _run_smaller(smaller, sys.argv[1:])
    else:
        status = _run_all(builds, started)
    print(f"{'FAILED' if status else 'Passed'} after {time.monotonic() - started:.0f} s.")
    return status


def _run_all(builds: Sequence[Build], started: float) -> int:
    with running(builds[0], builds[1]) as cluster:
        print(f"The cluster is ready after {time.monotonic() - started:.0f} s.", flush=True)
        journeys = cluster.control_plane.folder / "journeys"
        status = _run_tests(cluster, journeys, sys.argv[1:] or list(_TESTS))
        if status:
            print(cluster.control_plane.logs())
        print(report.describe(cluster, builds, journeys))
    return status


def _run_smaller(builds: Sequence[Build], named: Sequence[str]) -> int:
    if named:
        print(
            f"FAILED: {' '.join(named)} needs Kubernetes; {custom_kinds.TESTS} is all that runs without."
        )
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="slipway-journeys-") as folder,
        custom_kinds.running(*builds) as store,
    ):
        journeys = Path(folder) / "journeys"
        environment = {"SLIPWAY_TEST_JOURNEYS": str(journeys), **custom_kinds.environment_of(store)}
        status = _pytest([custom_kinds.TESTS], environment)
        print(report.describe_alone(builds, journeys))
    return status


def _run_tests(cluster: Cluster, journeys: Path, arguments: list[str]) -> int:
    environment = {
        "SLIPWAY_TEST_KUBECONFIG": str(cluster.portal),
        "SLIPWAY_TEST_ADMIN_KUBECONFIG": str(cluster.control_plane.admin),
        "SLIPWAY_TEST_JOURNEYS": str(journeys),
    }
    return _pytest(arguments, environment)


def _pytest(arguments: list[str], environment: Mapping[str, str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--durations=5", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
