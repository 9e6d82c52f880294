"""Cost pages and sealing with 5,000 deployments of 200 teams on 2,000 nodes and 90 days of hours.

Each page is rendered in this process on PostgreSQL; its time is the least of some requests, after one that
is not counted, so that other work on the machine counts little. Beside it stands the time of its own SQL statements alone, sent again without Django.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks import machine, scene
from tests.benchmarks.result import Result

if TYPE_CHECKING:
    from django.test import Client

    from tests.benchmarks.fleet_scene import Portal

# Pages take less than the first; none may take the second. Both are for the machine of `machine.slowness`.
GOAL_MS = 100.0
MOST_MS = 150.0
MOST_RATIO = 1.5
MOST_SEAL_SECONDS = 2.0
ROUNDS = int(os.environ.get("SLIPWAY_BENCH_ROUNDS", "7"))


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds, of the whole answer, of the processor for this process's part in it and for PostgreSQL's, and of
    its SQL sent again; kilobytes of the answer.
    """

    path: str
    page_ms: float
    cpu_ms: float
    database_ms: float
    sql_ms: float
    queries: int
    kilobytes: float


def main() -> Result:
    print(__doc__)
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        scene.start_stores(parts, folder)
        from tests.benchmarks import fleet_scene

        began = time.monotonic()
        portal = fleet_scene.build(fleet_scene.Size())
        print(f"seeded in {time.monotonic() - began:.0f} s")
        renew_sums()
        slowness = machine.slowness()
        timings = [measure(client, path) for client, paths in _pages(portal) for path in paths]
        seal_seconds, replayed = _seal(portal)
    return _report(timings, seal_seconds, replayed, slowness)


def measure(client: Client, path: str) -> Timing:
    """Raises AssertionError for an answer that is no success."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    times, cpu_times, database = zip(
        *(_timed(lambda: client.get(path)) for _ in range(ROUNDS)), strict=True
    )
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    # Statements whose plan is kept have no text; they read a row by an index.
    statements = [query["sql"] or "" for query in captured.captured_queries]
    sql = [_timed(lambda: _send(statements))[0] for _ in range(ROUNDS)]
    return Timing(
        path,
        min(times),
        min(cpu_times),
        min(database),
        min(sql),
        len(statements),
        len(answer.content) / 1000,
    )


def show(timing: Timing, slowness: float) -> None:
    """Print one line, which names what is over the goal or over the bound."""
    share = timing.page_ms / slowness
    mark = "OVER" if share > MOST_MS else "goal" if share > GOAL_MS else ""
    print(
        f"{mark:4} "
        f"{timing.page_ms:7.0f} ms  processor {timing.cpu_ms:5.0f} + {timing.database_ms:4.0f} ms PostgreSQL  "
        f"{timing.sql_ms:5.0f} ms SQL  {timing.queries:3} queries  {timing.kilobytes:7.0f} kB  {timing.path}"
    )


def client_of(user: Any) -> Client:
    from django.test import Client

    client = Client()
    client.force_login(user)
    return client


def _send(statements: list[str]) -> None:
    from django.db import connection

    raw = connection.connection
    with raw.cursor() as cursor:
        for statement in statements:
            if statement.lstrip("( ").startswith("SELECT"):
                cursor.execute(statement)
                cursor.fetchall()


def _timed(call: Callable[[], object]) -> tuple[float, float, float]:
    """Milliseconds, of the clock, of the processor, and of the processor for PostgreSQL."""
    database = _database_ms()
    began, cpu = time.perf_counter(), time.process_time()
    call()
    times = 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)
    return (*times, _database_ms() - database)


def _database_ms() -> float:
    """Of the process that serves this connection, without its parallel workers."""
    from django.db import connection

    connection.ensure_connection()
    process = connection.connection.info.backend_pid
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1_000_000


def _pages(portal: Portal) -> list[tuple[Client, list[str]]]:
    groups = [f"/costs?group={group}" for group in ("team", "model", "deployment", "revision")]
    own = [
        "/costs?group=deployment",
        f"/{portal.big_team}",
        f"/{portal.big_team}/deployments/d-0?tab=cost",
    ]
    return [
        (
            client_of(portal.admin),
            [
                *groups,
                "/costs?group=cluster",
                "/costs?range=30d&group=deployment",
                "/costs?range=24h",
                "/costs?range=24h&group=deployment",
                "/costs/ledger",
                f"/costs/ledger?holder={portal.big_team}&deployment=d-0",
                "/api/v1/costs",
                "/api/v1/costs?group_by=deployment",
                "/api/v1/costs/series",
            ],
        ),
        (client_of(portal.lead), own),
    ]


def renew_sums() -> None:
    """What workers renew every few minutes."""
    from fleet.costs.services import open_hours
    from fleet.telemetry.services import days

    open_hours.renew()
    days.sum_up_running()


def _seal(portal: Portal) -> tuple[float, int]:
    """Seconds to seal an hour of 10,000 leases, and what a second run and a late correction add."""
    from datetime import timedelta

    import time_machine

    from fleet.costs.services import ledger
    from fleet.models import Cluster, GpuLease, LedgerRow

    after = portal.now.replace(minute=5) + timedelta(hours=1)
    Cluster.objects.update(last_seen_at=after)
    print(f"{GpuLease.objects.filter(ended_at=None).count()} leases")
    with time_machine.travel(after, tick=False):
        began = time.process_time(), time.perf_counter()
        sealed = ledger.seal_due()
        seconds = time.perf_counter() - began[1]
        assert len(sealed) == 1, sealed
        rows = LedgerRow.objects.count()
        ledger.seal_due()
        ledger.adjust(cluster=portal.cluster, hour=sealed[0])
        return seconds, LedgerRow.objects.count() - rows


def _report(timings: list[Timing], seal_seconds: float, replayed: int, slowness: float) -> Result:
    most_seconds = MOST_SEAL_SECONDS * slowness
    worst = max(seal_seconds / most_seconds, float(replayed) * 2)
    for timing in timings:
        show(timing, slowness)
        worst = max(worst, timing.page_ms / (MOST_MS * slowness))
    print(
        f"sealing an hour: {seal_seconds:.2f} s (<= {most_seconds:.1f}); replay adds {replayed} rows"
    )
    ratio = max(timing.page_ms / timing.sql_ms for timing in timings)
    print(f"largest ratio of a page to its bare SQL: {ratio:.1f} (<= {MOST_RATIO})")
    unit = "worst of: a page over 150 ms, sealing over 2 s, both scaled to this machine, rows that a replay adds"
    return Result("costs", round(worst, 2), 1.0, unit)
