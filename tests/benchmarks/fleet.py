"""The Fleet page and the list of nodes with 2,000 nodes, 16,000 GPUs and 10,000 pods on them, on PostgreSQL.

Each is rendered in this process; its time is the least of some requests after one that is not counted.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from tests.benchmarks import machine, scene
from tests.benchmarks.costs import MOST_MS, client_of, measure, renew_sums, show
from tests.benchmarks.result import Result

MOST_KILOBYTES = 300.0
_POOL = "large/g5.48xlarge/on-demand"
_OF_ADMIN = ("/fleet", "/fleet?show=idle", f"/fleet?pool={_POOL}", f"/fleet?pool={_POOL}&page=9")
_OF_LEAD = ("/fleet", "/api/v1/nodes")


def main() -> Result:
    print(__doc__)
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        scene.start_stores(parts, folder)
        from fleet.models import GpuLease, Node
        from tests.benchmarks import fleet_scene

        # The ledger does not matter here; nodes, GPUs, pods and their readings do.
        portal = fleet_scene.build(fleet_scene.Size(versions=2_000, days=2, hours=1))
        renew_sums()
        gpus = sum(Node.objects.values_list("gpu_count", flat=True))
        held = GpuLease.objects.filter(ended_at=None).count()
        print(f"{Node.objects.count():,} nodes, {gpus:,} GPUs, {held:,} pods hold one each")
        admin, lead = client_of(portal.admin), client_of(portal.lead)
        paths = [(admin, path) for path in _OF_ADMIN] + [(lead, path) for path in _OF_LEAD]
        slowness = machine.slowness()
        timings = [measure(client, path) for client, path in paths]
    worst = 0.0
    for timing in timings:
        show(timing, slowness)
        page = timing.page_ms / (MOST_MS * slowness)
        worst = max(worst, page, timing.kilobytes / MOST_KILOBYTES)
    unit = "worst of: a page over 150 ms (scaled to this machine), over 300 kB"
    return Result("fleet", round(worst, 2), 1.0, unit)
