"""The registry beside a real MLflow 3 server, both with 20,000 versions.

Get a version, list those of a model, search all by two facts, create one. Both servers run in one run
on one PostgreSQL, each with two web processes, and are asked in turns by the same four clients over
kept connections. All rounds of what reads come before those that create, so that both sides are read
with 20,000 versions. MLflow answers anybody; the product checks the token and the team, limits the
caller, and writes the audit record. The product's latency of a search is measured with one client,
of the search of REST and of the page with counts.

The clients are Python's http.client for both sides, which costs a quarter of httpx: what a client takes on
a machine of two cores, no server has. The processor time of each side's web processes, of PostgreSQL and
of the clients is printed beside the rates: on a machine that does other work the rates say less. The bounds are
of processor time: half of MLflow's for what reads, all of it for what creates.

MLflow's rates are those of its server as it is delivered. It leaves Nagle's algorithm on, so most answers over a kept
connection wait 40 ms for the acknowledgement of their headers; that is in its rates and not in its processor time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from slipway_localcluster.controllers import free_ports
from tests.benchmarks import machine, mlflow_server, scene, waiting
from tests.benchmarks.kept_client import KeptClient
from tests.benchmarks.registry_scene import MODELS, VERSIONS_EACH, Prepared, prepare
from tests.benchmarks.result import Result

CLIENTS = 4
WORKERS = 2
ROUNDS = int(os.environ.get("SLIPWAY_BENCH_ROUNDS", "3"))
SECONDS = float(os.environ.get("SLIPWAY_BENCH_SECONDS", "4"))
READS, WRITES = ("get", "list", "search"), ("create",)
WARM_UP = 20
SEARCHES = 200
# Processor time beside MLflow's.
MOST_RATIO = {"get": 0.5, "list": 0.5, "search": 0.5, "create": 1.0}
MOST_SEARCH_MS = 50.0
MOST_PAGE_MS = 100.0
_numbers = itertools.count()

Call = Callable[[KeptClient, int], bytes]


@dataclass(slots=True)
class Side:
    name: str
    address: str
    headers: dict[str, str]
    calls: dict[str, Call]
    # Its server with all children, and PostgreSQL.
    parts: list[psutil.Process] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)
    # Bytes of one answer.
    sizes: dict[str, int] = field(default_factory=dict)
    processor_ms: dict[str, list[float]] = field(default_factory=dict)
    # The share of PostgreSQL in it.
    database_ms: dict[str, list[float]] = field(default_factory=dict)
    # Of the clients, which is not in it.
    client_ms: dict[str, list[float]] = field(default_factory=dict)

    def processor_seconds(self) -> list[float]:
        """Of each part."""
        return [self._seconds_of(part) for part in self.parts]

    @staticmethod
    def _seconds_of(part: psutil.Process) -> float:
        seconds = 0.0
        for process in (part, *part.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                ended = times.children_user + times.children_system
                seconds += float(times.user + times.system + ended)
        return seconds


def main() -> Result:
    print(__doc__)
    mlflow_server.install()
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        # Of this run only.
        os.environ["SLIPWAY_DEBUG"] = "0"
        scene.start_stores(parts, folder)
        prepared = prepare()
        sides = [_product(parts, folder, prepared), _mlflow(parts, folder)]
        for operations in (READS, WRITES):
            for _ in range(ROUNDS):
                for operation in operations:
                    for side in sides:
                        _measure(side, operation)
            if operations is READS:
                search_ms = _latency(sides[0], _search)
        page_ms = _page_latency(sides[0], prepared)
        slowness = machine.slowness()
    return _report(sides, search_ms, page_ms, slowness)


def _report(sides: list[Side], search_ms: float, page_ms: float, slowness: float) -> Result:
    product, mlflow = sides
    most_search_ms, most_page_ms = MOST_SEARCH_MS * slowness, MOST_PAGE_MS * slowness
    worst = max(search_ms / most_search_ms, page_ms / most_page_ms)
    for operation in (*READS, *WRITES):
        ours = statistics.median(product.rates[operation])
        theirs = statistics.median(mlflow.rates[operation])
        cost, of_mlflow = (statistics.median(side.processor_ms[operation]) for side in sides)
        ratio, most = cost / of_mlflow, MOST_RATIO[operation]
        worst = max(worst, ratio / most)
        database, of_its = (statistics.median(side.database_ms[operation]) for side in sides)
        print(
            f"{operation:<8} {ours:7.1f}/s, MLflow {theirs:7.1f}/s; processor "
            f"{cost:6.2f} ms (PostgreSQL {database:.2f}), MLflow {of_mlflow:6.2f} ms ({of_its:.2f}): "
            f"{ratio:4.2f} (<= {most}); clients "
            f"{statistics.median(product.client_ms[operation]):.2f} ms; answer "
            f"{product.sizes[operation]:,} bytes, MLflow {mlflow.sizes[operation]:,}"
        )
    print(f"search p95 {search_ms:.0f} ms (<= {most_search_ms:.0f})")
    print(f"page with counts p95 {page_ms:.0f} ms (<= {most_page_ms:.0f})")
    unit = (
        "worst of: processor time over half of MLflow's (create: all of it), p95 of search over 50 ms, of the page "
        "over 100 ms, both scaled to this machine"
    )
    return Result("registry", round(worst, 2), 1.0, unit)


def _measure(side: Side, operation: str) -> None:
    """Requests per second of all clients, and the processor time of one. An answer that is no success
    ends the run.
    """
    call = side.calls[operation]
    stop = threading.Event()
    counts = [0] * CLIENTS
    errors: list[BaseException] = []

    def work(client: KeptClient, place: int) -> None:
        try:
            while not stop.is_set():
                call(client, next(_numbers))
                counts[place] += 1
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    with contextlib.ExitStack() as connections:
        clients = [connections.enter_context(_client(side)) for _ in range(CLIENTS)]
        for client in clients * WARM_UP:
            side.sizes[operation] = len(call(client, next(_numbers)))
        threads = [threading.Thread(target=work, args=(c, n)) for n, c in enumerate(clients)]
        before, began = side.processor_seconds(), time.monotonic()
        own = time.process_time()
        for thread in threads:
            thread.start()
        stop.wait(SECONDS)
        stop.set()
        for thread in threads:
            thread.join()
        own = time.process_time() - own
        taken, after = time.monotonic() - began, side.processor_seconds()
    server, database = (end - start for start, end in zip(before, after, strict=True))
    if errors:
        raise errors[0]
    side.rates.setdefault(operation, []).append(sum(counts) / taken)
    side.processor_ms.setdefault(operation, []).append(1000 * (server + database) / sum(counts))
    side.database_ms.setdefault(operation, []).append(1000 * database / sum(counts))
    side.client_ms.setdefault(operation, []).append(1000 * own / sum(counts))


def _processes(folder: Path, server: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return [psutil.Process(server.pid), scene.postmaster(folder)]


def _latency(side: Side, call: Call) -> float:
    """95th percentile in milliseconds, with one client."""
    with _client(side) as client:
        taken = []
        for _ in range(SEARCHES):
            began = time.monotonic()
            call(client, next(_numbers))
            taken.append(1000 * (time.monotonic() - began))
    return statistics.quantiles(taken, n=20)[-1]


def _page_latency(side: Side, prepared: Prepared) -> float:
    cookies = {"Cookie": f"sessionid={prepared.session}"}
    pages = itertools.cycle(
        [
            "/vision/models",
            "/vision/models?q=int8",
            "/vision/models?q=2026-10+map%3E0.5",
            "/vision/models?sort=-metric:map",
        ]
    )
    return _latency(
        Side("page", side.address, cookies, {}), lambda client, _: client.get(next(pages))
    )


def _client(side: Side) -> KeptClient:
    return KeptClient(side.address, side.headers)


def _model(number: int) -> str:
    return f"model-{number % MODELS}"


def _product(parts: contextlib.ExitStack, folder: Path, prepared: Prepared) -> Side:
    port = free_ports.take_one()
    command = [
        *(sys.executable, "-m", "gunicorn", "portal.wsgi:application"),
        *("--config", "python:portal.web_server", "--worker-class", "gthread"),
        *("--workers", str(WORKERS), "--threads", "8"),
        *("--bind", f"127.0.0.1:{port}", "--no-control-socket", "--keep-alive", "60"),
    ]
    log = parts.enter_context((folder / "web.log").open("w"))
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    parts.callback(process.wait, 60)
    parts.callback(process.terminate)
    address = f"http://127.0.0.1:{port}"
    headers = {"Authorization": f"Bearer {prepared.token}"}

    def answers() -> bool:
        return httpx.get(f"{address}/api/v1/me", headers=headers, timeout=60).is_success

    waiting.until(answers, seconds=400, log=folder / "web.log")
    return Side(
        "Slipway",
        address,
        headers,
        {
            "create": lambda client, n: client.post(
                f"/api/v1/models/bench/{_model(n)}/references",
                {
                    "source_uri": f"hf://organisation/new-{n}:{n:040x}",
                    "metadata": {"labels": {"precision": "int8"}, "dataset_version": "2026-10"},
                },
            ),
            "get": lambda client, n: client.get(
                f"/api/v1/models/bench/{_model(n)}/versions/{n % VERSIONS_EACH + 1}"
            ),
            "list": lambda client, n: client.get(
                f"/api/v1/models/bench/{_model(n)}/versions?limit=50"
            ),
            "search": _search,
        },
        _processes(folder, process),
    )


def _search(client: KeptClient, number: int) -> bytes:
    month = f"2026-{number % 12 + 1:02}"
    return client.get("/api/v1/versions", search=f"int8 {month}", limit=50)


def _mlflow(parts: contextlib.ExitStack, folder: Path) -> Side:
    database = _database("mlflow")
    address, process = mlflow_server.start(
        parts, folder, database, port=free_ports.take_one(), workers=WORKERS
    )
    mlflow_server.fill(database, models=MODELS, versions_each=VERSIONS_EACH)
    versions = "/api/2.0/mlflow/model-versions"

    def search(client: KeptClient, text: str) -> bytes:
        return client.get(f"{versions}/search", filter=text, max_results=50)

    return Side(
        "MLflow",
        address,
        {},
        {
            "create": lambda client, n: client.post(
                f"{versions}/create",
                {
                    "name": _model(n),
                    "source": f"s3://bucket/new/{n}",
                    "tags": [
                        {"key": "precision", "value": "int8"},
                        {"key": "dataset", "value": "2026-10"},
                    ],
                },
            ),
            "get": lambda client, n: client.get(
                f"{versions}/get",
                name=_model(n),
                version=n % VERSIONS_EACH + 1,
            ),
            "list": lambda client, n: search(client, f"name='{_model(n)}'"),
            "search": lambda client, n: search(
                client, f"tags.precision = 'int8' AND tags.dataset = '2026-{n % 12 + 1:02}'"
            ),
        },
        _processes(folder, process),
    )


def _database(name: str) -> str:
    """A database of its own on the same server."""
    import psycopg

    own = os.environ["SLIPWAY_DATABASE_URL"]
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return own.replace("/postgres?", f"/{name}?")
