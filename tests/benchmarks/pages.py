"""Every page and list of a large portal: 200 teams (one has a tenth), 20,000 versions, 5,000 deployments, 2,000 nodes
with 16,000 GPUs, 90 days of ledger, and many rows behind everything else, on PostgreSQL.

Each is rendered in this process; its time is the least of some requests after one that is not counted. Its number
of queries is pinned in pages.json, which SLIPWAY_BENCH_PIN=1 writes. SLIPWAY_BENCH_ONLY=text measures a part.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks import machine, scene
from tests.benchmarks.costs import MOST_MS, Timing, client_of, measure, renew_sums, show
from tests.benchmarks.result import Result

if TYPE_CHECKING:
    from tests.benchmarks.every_page import Address

MOST_KILOBYTES = 150.0
# The fleet map.
MOST_KILOBYTES_OF_FLEET = 300.0
_PINNED = Path(__file__).with_suffix(".json")


def main() -> Result:
    print(__doc__)
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        scene.start_stores(parts, folder)
        from tests.benchmarks import every_page, pages_scene

        full = pages_scene.build(parts)
        renew_sums()
        only = os.environ.get("SLIPWAY_BENCH_ONLY", "")
        addresses = [item for item in every_page.addresses(full) if only in item.key]
        clients = {role: client_of(getattr(full.world, role)) for role in ("admin", "lead")}
        timings, broken, slowness = {}, [], machine.slowness()
        for item in addresses:
            try:
                timings[item] = measure(clients[item.role], item.path)
            except Exception as error:  # noqa: BLE001  named below, with all others
                broken.append(f"BROKEN {item.role} {item.path}: {type(error).__name__} {error}")
    return _report(timings, broken, slowness, is_part=bool(only))


def _report(
    timings: dict[Address, Timing], broken: list[str], slowness: float, *, is_part: bool
) -> Result:
    pinned: dict[str, int] = json.loads(_PINNED.read_text())
    counts = {f"{item.role} {item.key}": timing.queries for item, timing in timings.items()}
    if os.environ.get("SLIPWAY_BENCH_PIN"):
        pinned |= counts
        _PINNED.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n")
    worst, over = 0.0, 0
    for item, timing in sorted(timings.items(), key=lambda pair: -pair[1].page_ms):
        share = max(timing.page_ms / (MOST_MS * slowness), _share_of_size(timing))
        worst, over = max(worst, share), over + (share > 1)
        print(f"{'SIZE' if _share_of_size(timing) > 1 else '    '} {item.role:5} ", end="")
        show(timing, slowness)
    print(f"{len(timings)} addresses, {over} over their bounds")
    others = {key: n for key, n in counts.items() if pinned.get(key) != n}
    for key, number in others.items():
        print(f"queries: {key}: {number}, pinned {pinned.get(key)}")
    gone = set() if is_part else pinned.keys() - counts.keys()
    for text in [*broken, *(f"pinned, and gone: {key}" for key in sorted(gone))]:
        print(text)
    unit = (
        "worst of: a page over 150 ms (scaled to this machine), over 150 kB (the fleet map: 300 kB), "
        "other numbers of queries"
    )
    value = max(worst, 99.0 if broken or others or gone else 0.0)
    return Result("pages", round(value, 2), 1.0, unit)


def _share_of_size(timing: Timing) -> float:
    """Of what a page may have; lists of the API have the size that their client asks for."""
    if timing.path.startswith("/api/"):
        return 0.0
    is_fleet = timing.path.partition("?")[0] == "/fleet"
    return timing.kilobytes / (MOST_KILOBYTES_OF_FLEET if is_fleet else MOST_KILOBYTES)
