"""Pages and lists of the API of a large portal: 200 teams (one has a tenth), 20,000 versions, 5,000 deployments,
2,000 nodes with 16,000 GPUs, 90 days of ledger, on PostgreSQL.

Each is rendered in this process; its time is the least of some requests after one that is not counted.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from tests.benchmarks import scene
from tests.benchmarks.costs import MOST_MS, client_of, measure, renew_sums, show
from tests.benchmarks.result import Result

MOST_KILOBYTES = 150.0
# The fleet map.
MOST_KILOBYTES_OF_FLEET = 300.0
_OF_ADMIN = (
    *("/costs", "/costs?group=deployment", "/costs/ledger", "/fleet", "/admin/prices", "/admin"),
    *("/api/v1/nodes", "/api/v1/costs", "/api/v1/prices", "/api/v1/pods", "/api/v1/clusters"),
)
_OF_LEAD = (
    *("/", "/models", "/deployments", "/deployments/new", "/approvals", "/pipelines", "/advice"),
    *("/deployments/{team}/d-0", "/deployments/{team}/d-0/cost", "/audit"),
    *("/api/v1/models", "/api/v1/versions", "/api/v1/deployments", "/api/v1/changes"),
)


def main() -> Result:
    print(__doc__)
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        scene.start_stores(parts, folder)
        from tests.benchmarks import fleet_scene

        portal = fleet_scene.build(fleet_scene.Size())
        renew_sums()
        admin, lead = client_of(portal.admin), client_of(portal.lead)
        paths = [(admin, path) for path in _OF_ADMIN]
        paths += [(lead, path.format(team=portal.big_team)) for path in _OF_LEAD]
        timings = [measure(client, path) for client, path in paths]
    timings.sort(key=lambda timing: -timing.page_ms)
    worst = 0.0
    for timing in timings:
        show(timing)
        most = MOST_KILOBYTES_OF_FLEET if timing.path == "/fleet" else MOST_KILOBYTES
        worst = max(worst, timing.page_ms / MOST_MS, timing.kilobytes / most)
    unit = "worst of: a page over 100 ms, over 150 kB (the fleet map: 300 kB)"
    return Result("pages", round(worst, 2), 1.0, unit)
