"""How fast 500 desired deployments reach the API server, with everything that is recorded of them.

1. the product: `reconcile.sweep`, as a delivery worker calls it, from rows to objects to rows;
2. bare: the same manifests, server-side apply on eight threads over the same kind of client;
3. kubectl: `kubectl apply --server-side` of the same manifests as one file per deployment.

All on one local API server in one run, each with names of its own; the first two twice, around kubectl.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.result import Result
from tests.benchmarks.scene import Scene, desired_deployments, scene

if TYPE_CHECKING:
    from deployments.models import Deployment

COUNT = 500
THREADS = 8
# The least ratio of the product's rate to that of the others.
OF_BARE = 0.7
OF_KUBECTL = 1.5

Files = list[list[dict[str, Any]]]


def main() -> Result:
    print(__doc__)
    with scene() as where:
        bare, product = _bare(where, "before"), _product(where, "first")
        kubectl = _kubectl(where)
        bare += _bare(where, "after")
        product += _product(where, "second")
    bare, product = bare / 2, product / 2
    for name, seconds in (("product", product), ("bare", bare), ("kubectl", kubectl)):
        print(f"{name:<8} {seconds:6.2f} s   {COUNT / seconds:6.0f} deployments/s")
    print(f"of bare {bare / product:.2f} (>= {OF_BARE}), of kubectl {kubectl / product:.2f}")
    worst = max(OF_BARE / (bare / product), OF_KUBECTL / (kubectl / product))
    unit = f"worst of two bounds over ratio: {OF_BARE} of bare apply, {OF_KUBECTL} of kubectl"
    return Result("push", round(worst, 2), 1.0, unit)


def _product(where: Scene, prefix: str) -> float:
    from deployments.delivery.services import reconcile
    from deployments.models import Deployment
    from portal.core import clock

    deployments = desired_deployments(where, prefix, COUNT)
    mine = Deployment.objects.filter(pk__in=[deployment.pk for deployment in deployments])
    mine.update(next_check_at=clock.now())

    def deliver() -> None:
        while mine.filter(observed_generation=0).exists():
            reconcile.sweep()

    seconds = _timed(deliver)
    assert mine.filter(state="progressing", observed__r1__stage="accepted").count() == COUNT
    return seconds


def _bare(where: Scene, prefix: str) -> float:
    from fleet.kube.services import clients

    files = _files(desired_deployments(where, prefix, COUNT))
    client = clients.client_for(where.cluster_id)

    def apply(manifests: Sequence[dict[str, Any]]) -> None:
        for manifest in manifests:
            client.apply(manifest)

    def push() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(apply, files))

    return _timed(push)


def _kubectl(where: Scene) -> float:
    from deployments.manifests.domain.metadata import to_yaml

    files = _files(desired_deployments(where, "kubectl", COUNT))
    kubectl = str(Path(sysconfig.get_path("scripts")) / "kubectl")
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        for number, manifests in enumerate(files):
            (Path(folder) / f"{number:03}.yaml").write_text(to_yaml(manifests))
        command = [kubectl, "apply", "--server-side", "-f", folder]
        environment = where.api.kubectl_environment()
        return _timed(lambda: _run(command, environment))


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"kubectl apply failed: {done.stderr[-2000:]}")


def _files(deployments: Sequence[Deployment]) -> Files:
    """The manifests that the product writes for each deployment."""
    from deployments.manifests.selectors.rendered import RenderedDeployment

    files = []
    for deployment in deployments:
        rendered = RenderedDeployment(deployment)
        (revision,) = rendered.revisions
        files.append([*rendered.render_revision(revision).manifests, rendered.route])
    return files


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
