"""One sweep over the metrics of 1,000 pods, and Debian's Prometheus on the same endpoints.

The endpoints are live and shaped as a real Triton's. The portal reads them as it does in production, through the
path of the API server's pod proxy, writes a sample of each and rolls them up; the minutes before are there as
sweeps of every five seconds left them. Prometheus scrapes the same addresses every five seconds into its own
database. Processor time is that of the process that sweeps; what PostgreSQL takes stands beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any
from unittest import mock

import httpx
import psutil

from slipway_localcluster.controllers import free_ports
from tests.benchmarks import scene, waiting
from tests.benchmarks.result import Result

if TYPE_CHECKING:
    from fleet.models import Cluster

PODS = int(os.environ.get("SLIPWAY_BENCH_PODS", "1000"))
EVERY_SECONDS = 5
SWEEPS = 8
PROMETHEUS_SECONDS = 30
MOST_SECONDS, MOST_CPU_SECONDS, MOST_RATIO = 5.0, 3.0, 1.5
_ROOT = Path(__file__).parents[2]
_NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Sweep:
    """Seconds; `reads` is the part of the processor time that reading and parsing takes."""

    wall: float
    cpu: float
    reads: float
    database: float


def main() -> Result:
    print(__doc__)
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        scene.start_stores(parts, folder)
        port = parts.enter_context(_endpoints())
        _seed(_write_kubeconfig(folder, port))
        sweeps = [_sweep(number) for number in range(SWEEPS)][1:]
        each_prometheus = _prometheus(folder, port)
    return _report(sweeps, each_prometheus)


@contextlib.contextmanager
def _endpoints() -> Iterator[int]:
    command = [sys.executable, "-m", "tests.benchmarks.triton_endpoints"]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def _write_kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    }
    path.write_text(json.dumps(config))
    return path


def path_of(number: int) -> str:
    return f"/api/v1/namespaces/{_NAMESPACE}/pods/w-{number}-0:8002/proxy/metrics"


def _seed(kubeconfig: Path) -> None:
    from fleet.models import Cluster
    from portal.core import clock
    from tests.accounts import make_team

    now = clock.now()
    cluster = Cluster.objects.create(
        name="bench",
        kind="kubeconfig",
        kubeconfig_path=str(kubeconfig),
        gateway_url="http://gateway.example",
        is_reachable=True,
        created_at=now,
    )
    _seed_pods(cluster, make_team(slug=_NAMESPACE), now - timedelta(days=1))
    _seed_samples(now)


def _seed_pods(cluster: Cluster, team: Any, at: datetime) -> None:
    from fleet.models import Pod, Workload

    workloads = Workload.objects.bulk_create(
        Workload(
            cluster=cluster,
            team=team,
            namespace=_NAMESPACE,
            name=f"w-{number}",
            labels={"deployment": f"w-{number}", "revision": "1", "model": f"{_NAMESPACE}/m"},
            created_at=at,
        )
        for number in range(PODS)
    )
    Pod.objects.bulk_create(
        Pod(
            cluster=cluster,
            workload=workload,
            namespace=_NAMESPACE,
            name=f"w-{number}-0",
            uid=f"uid-{number}",
            phase="Running",
            is_ready=True,
            gpu_resource="nvidia.com/gpu",
            gpu_units=1,
            ready_at=at,
            created_at=at,
        )
        for number, workload in enumerate(workloads)
    )


def _seed_samples(now: datetime) -> None:
    """Of the last ten minutes, with the minutes that they were rolled up to."""
    from django.db import connection

    from fleet.models import MetricSample, Workload
    from fleet.telemetry.domain.counters import COUNTER_NAMES
    from fleet.telemetry.services import rollups

    zeros = dict.fromkeys(COUNTER_NAMES, "0")
    columns = ", ".join(["pod_id", "at", *zeros])
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {MetricSample._meta.db_table} ({columns}) "
            f"SELECT p.id, at, {', '.join(zeros.values())} FROM fleet_pod p CROSS JOIN "
            "generate_series(%s::timestamptz, %s::timestamptz, %s::interval) at",
            [now - timedelta(minutes=10), now - timedelta(seconds=1), f"{EVERY_SECONDS} seconds"],
        )
        cursor.execute("ANALYZE")
    pks = set(Workload.objects.values_list("pk", flat=True))
    for minutes in (8, 4, 0):
        rollups.roll_up(workload_ids=pks, at=now - timedelta(minutes=minutes))


def _sweep(number: int) -> Sweep:
    import time_machine

    from fleet.telemetry.services import poll

    reads: list[float] = []
    at = datetime.now(UTC) + timedelta(seconds=number * EVERY_SECONDS)

    def timed(*args: Any) -> Any:
        began = time.process_time()
        readings = read_all(*args)
        reads.append(time.process_time() - began)
        return readings

    read_all = poll.read_all
    began, cpu, database = time.perf_counter(), time.process_time(), _database_seconds()
    with time_machine.travel(at), mock.patch.object(poll, "read_all", timed):
        answered = poll.poll()
    assert answered == PODS, f"{answered} of {PODS} answered"
    return Sweep(
        wall=time.perf_counter() - began,
        cpu=time.process_time() - cpu,
        reads=reads[0],
        database=_database_seconds() - database,
    )


def _database_seconds() -> float:
    """Processor time of the PostgreSQL process of this connection."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        times = psutil.Process(cursor.fetchone()[0]).cpu_times()
    return float(times.user + times.system)


def _prometheus(folder: Path, port: int) -> float:
    """Processor seconds of one scrape. Raises where Prometheus is not installed."""
    program = which("prometheus")
    assert program, "Debian's package prometheus is not installed"
    own = free_ports.take_one()
    jobs = [
        {
            "job_name": f"w-{number}",
            "metrics_path": path_of(number),
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        }
        for number in range(PODS)
    ]
    config = {"global": {"scrape_interval": f"{EVERY_SECONDS}s"}, "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    log = folder / "prometheus.log"
    command = [program, f"--config.file={folder}/prometheus.yml"]
    command += [f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{own}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        ready = f"http://127.0.0.1:{own}/-/ready"
        waiting.until(lambda: httpx.get(ready).status_code == 200, seconds=60, log=log)
        # Its first scrapes make the series, which later ones do not.
        waiting.until(lambda: _pages(port) > PODS * (SWEEPS + 3), seconds=60, log=log)
        before, cpu = _pages(port), _cpu(process)
        time.sleep(PROMETHEUS_SECONDS)
        return (_cpu(process) - cpu) / (_pages(port) - before)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _pages(port: int) -> int:
    return int(httpx.get(f"http://127.0.0.1:{port}/count").text)


def _cpu(process: subprocess.Popen[bytes]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def _report(sweeps: list[Sweep], each_prometheus: float) -> Result:
    for sweep in sweeps:
        print(
            f"sweep: {sweep.wall:.2f} s, processor {sweep.cpu:.2f} s (of it {sweep.reads:.2f} s to read), "
            f"PostgreSQL {sweep.database:.2f} s"
        )
    wall, cpu, reads = (
        min(getattr(sweep, name) for sweep in sweeps) for name in ("wall", "cpu", "reads")
    )
    print(
        f"wall {wall:.2f} s (<= {MOST_SECONDS:g}), processor {cpu:.2f} s (<= {MOST_CPU_SECONDS:g})"
    )
    each = reads / PODS
    ratio = each / each_prometheus
    print(
        f"a scrape: {1000 * each:.3f} ms, with sample and roll-up {1000 * cpu / PODS:.3f} ms; "
        f"Prometheus {1000 * each_prometheus:.3f} ms; ratio {ratio:.1f} (<= {MOST_RATIO}), "
        f"with sample and roll-up {cpu / PODS / each_prometheus:.1f}"
    )
    worst = max(wall / MOST_SECONDS, cpu / MOST_CPU_SECONDS, ratio / MOST_RATIO)
    unit = "worst of: wall over 5 s, processor over 3 s, a scrape over 1.5 of Prometheus"
    return Result("sweep", round(worst, 2), 1.0, unit)
