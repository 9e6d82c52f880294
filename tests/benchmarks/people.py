"""500 signed-in people with pages open and 100 notebook clients, on PostgreSQL, with four web processes.

A page asks again when its fragments say so (`hx-trigger`), every 15 s where nothing moves. A notebook does one thing every 5 s with its token: it registers a version, reads it,
searches, lists deployments, and writes metadata. Each acknowledged write is looked up at the end. The first
seconds are not counted. Web, database and this client share the machine; what other programs used of it is printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import psutil

from slipway_localcluster.controllers import free_ports
from tests.benchmarks import machine, scene, waiting
from tests.benchmarks.result import Result

if TYPE_CHECKING:
    from tests.benchmarks.people_scene import Person, Prepared

WORKERS, CPUS = 4, 2
SECONDS = float(os.environ.get("SLIPWAY_BENCH_SECONDS", "60"))
WARM_UP_SECONDS = 15.0
MOST_P95_MS = 300.0
_PAUSE_SECONDS = 5.0
# What a page asks for: its address and the id of the fragment; and how many of a hundred people have it open.
_DEPLOYMENT = "/{team}/deployments/{deployment}"
_PAGES = (
    (30, (("/{team}", "home"),)),
    (30, ((_DEPLOYMENT, "deployment-head"),)),
    (20, (("/{team}/deployments", "deployment-rows"),)),
    (10, (("/approvals", "inbox"),)),
    (10, (("/fleet", "fleet-board"),)),
)
# People open their pages at any time: first requests are spread over what lies between two.
_SPREAD_SECONDS = 15.0
_TRIGGER = re.compile(rb'hx-trigger="every (\d+)s')


@dataclass(slots=True)
class Load:
    """Times are those of the monotonic clock; requests that are sent after `began` are counted."""

    began: float
    ends: float
    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    # Answered while the processor time was measured.
    served: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    # Name of the reference to the metadata that was acknowledged last.
    written: dict[str, str] = field(default_factory=dict)


def main() -> Result:
    print(__doc__)
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-bench-")))
        # Of this run only.
        os.environ["SLIPWAY_DEBUG"] = "0"
        scene.start_stores(parts, folder)
        from tests.benchmarks import people_scene

        prepared = people_scene.prepare()
        address, web = _start_web(parts, folder)
        used = _Usage(web, scene.postmaster(folder))
        load = asyncio.run(_run(address, prepared, used))
        lost = people_scene.lost(load.written)
        return _report(load, used, lost, MOST_P95_MS * machine.slowness())


def _start_web(parts: contextlib.ExitStack, folder: Path) -> tuple[str, psutil.Process]:
    port = free_ports.take_one()
    command = [
        *(sys.executable, "-m", "gunicorn", "portal.wsgi:application"),
        *("--worker-class", "gthread", "--workers", str(WORKERS), "--threads", "8"),
        *("--bind", f"127.0.0.1:{port}", "--no-control-socket", "--keep-alive", "60"),
    ]
    log = parts.enter_context((folder / "web.log").open("w"))
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    parts.callback(process.wait, 60)
    parts.callback(process.terminate)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        return httpx.get(f"{address}/sign-in", timeout=60).is_success

    waiting.until(answers, seconds=400, log=folder / "web.log")
    return address, psutil.Process(process.pid)


async def _run(address: str, prepared: Prepared, used: _Usage) -> Load:
    now = time.monotonic()
    load = Load(now + WARM_UP_SECONDS, now + WARM_UP_SECONDS + SECONDS)
    # Each browser has connections of its own; notebooks have one.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=55)
    async with aiohttp.ClientSession(
        address, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
    ) as http:
        tasks = [
            _poll(http, load, person, fragment)
            for place, person in enumerate(prepared.people)
            for fragment in _page_of(place)
        ]
        tasks += [_notebook(http, load, token, n) for n, token in enumerate(prepared.tokens)]
        await asyncio.gather(_measure(load, used), *tasks)
    return load


async def _measure(load: Load, used: _Usage) -> None:
    await asyncio.sleep(max(0.0, load.began - time.monotonic()))
    used.begin()
    await asyncio.sleep(max(0.0, load.ends - time.monotonic()))
    used.end()


def _page_of(place: int) -> tuple[tuple[str, str], ...]:
    rest = place % 100
    for share, page in _PAGES:
        if rest < share:
            return page
        rest -= share
    raise AssertionError("the shares sum to 100")


async def _poll(
    http: aiohttp.ClientSession, load: Load, person: Person, fragment: tuple[str, str]
) -> None:
    """As htmx does: the fragment says when it is due again; a request that is still running delays the next."""
    address, target = fragment
    path = address.format(**person.names)
    headers = {
        "HX-Request": "true",
        "HX-Target": target,
        "Cookie": f"sessionid={person.session}",
    }
    due = time.monotonic() + random.uniform(0, _SPREAD_SECONDS)
    while due < load.ends:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        content = await _send(http, load, f"page {target}", "GET", path, headers)
        trigger = _TRIGGER.search(content)
        if content and not trigger:
            load.errors[f"{target} does not poll"] += 1
        due = max(due + (int(trigger[1]) if trigger else _SPREAD_SECONDS), time.monotonic())


async def _notebook(http: aiohttp.ClientSession, load: Load, token: str, number: int) -> None:
    notebook = _Notebook(http, load, {"Authorization": f"Bearer {token}"}, number)
    due = time.monotonic() + random.uniform(0, _PAUSE_SECONDS)
    while due < load.ends:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        await notebook.do_next()
        due = max(due + _PAUSE_SECONDS, time.monotonic())


@dataclass(slots=True)
class _Notebook:
    http: aiohttp.ClientSession
    load: Load
    headers: dict[str, str]
    number: int
    steps: int = 0
    source: str = ""
    version: str = ""

    async def do_next(self) -> None:
        step, turn = self.steps % 5, self.steps // 5
        self.steps += 1
        if step == 0:
            await self._register(turn)
        elif step == 1 and self.version:
            await self._get("version", self.version)
        elif step == 2:
            await self._get("search", "/api/v1/versions?search=hf&limit=20")
        elif step == 3:
            await self._get("deployments", "/api/v1/deployments?limit=20")
        elif self.version:
            await self._describe(str(turn + 1))

    async def _register(self, turn: int) -> None:
        commit = f"{self.number * 100_000 + turn:040x}"
        self.source = f"hf://organisation/book-{self.number}-{turn}:{commit}"
        body = {"source_uri": self.source, "metadata": {"notes": "0"}}
        path = f"/api/v1/models/team-{self.number % 20}/book-{self.number}/references"
        made = await _send(self.http, self.load, "api register", "POST", path, self.headers, body)
        self.version = f"/api/v1/versions/{json.loads(made)['id']}" if made else ""
        if made:
            self.load.written[self.source] = "0"

    async def _describe(self, notes: str) -> None:
        body = {"metadata": {"notes": notes}}
        if await _send(
            self.http, self.load, "api describe", "PATCH", self.version, self.headers, body
        ):
            self.load.written[self.source] = notes

    async def _get(self, name: str, path: str) -> None:
        await _send(self.http, self.load, f"api {name}", "GET", path, self.headers)


async def _send(
    http: aiohttp.ClientSession,
    load: Load,
    kind: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: dict[str, Any] | None = None,
) -> bytes:
    """The body of a success, else nothing."""
    began = time.monotonic()
    answer = b""
    try:
        async with http.request(
            method, path, headers=headers, json=body, allow_redirects=False
        ) as response:
            content = await response.read()
            # 286 ends the polling of what is final.
            is_success = response.status in {200, 201, 286}
            if not is_success:
                load.errors[f"{kind}: {response.status} {content[:200]!r}"] += 1
            else:
                answer = content
    except (aiohttp.ClientError, TimeoutError) as error:
        load.errors[f"{kind}: {type(error).__name__}"] += 1
    if load.began <= time.monotonic() <= load.ends:
        load.served += 1
    if began >= load.began:
        load.taken[kind].append(1000 * (time.monotonic() - began))
    return answer


class _Usage:
    """Processor seconds between `begin` and `end`, of web, the database, this client, and all others."""

    def __init__(self, web: psutil.Process, database: psutil.Process) -> None:
        self._trees = {"web": web, "database": database, "client": psutil.Process()}
        self._first: dict[str, float] = {}
        self.seconds: dict[str, float] = {}

    def begin(self) -> None:
        self._first = self._now()

    def end(self) -> None:
        last = self._now()
        self.seconds = {name: last[name] - self._first[name] for name in last}
        own = sum(self.seconds[name] for name in self._trees)
        self.seconds["other programs"] = self.seconds.pop("machine") - own

    def _now(self) -> dict[str, float]:
        times = psutil.cpu_times()
        used = {name: _seconds_of(tree, name) for name, tree in self._trees.items()}
        return {**used, "machine": times.user + times.system + times.nice}


def _seconds_of(process: psutil.Process, name: str) -> float:
    """The client alone without the servers, which are its children."""
    tree = [process] if name == "client" else [process, *process.children(recursive=True)]
    total = 0.0
    for one in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
            # Of those that ended: a server of PostgreSQL ends with its connection.
            total += 0 if name == "client" else times.children_user + times.children_system
    return total


def _report(load: Load, used: _Usage, lost: int, most_ms: float) -> Result:
    taken = [one for rows in load.taken.values() for one in rows]
    rows = sorted(load.taken.items(), key=lambda item: -_p95(item[1]))
    print(f"{'':<28}{'requests':>9}{'median':>9}{'p95':>9}  ms")
    for kind, times in rows:
        print(f"{kind:<28}{len(times):>9}{statistics.median(times):>9.0f}{_p95(times):>9.0f}")
    p95 = _p95(taken)
    print(
        f"all: {len(taken)} requests, p95 {p95:.0f} ms (<= {most_ms:.0f}); {load.served / SECONDS:.0f} answers/s"
    )
    for name, seconds in used.seconds.items():
        each = (
            f", {1000 * seconds / max(load.served, 1):.1f} ms a request"
            if name != "other programs"
            else ""
        )
        print(f"processor of {name}: {seconds / SECONDS:.2f} of {os.cpu_count()} cores{each}")
    print(f"{sum(load.errors.values())} errors; {len(load.written)} versions written, {lost} lost")
    for error, count in load.errors.most_common(5):
        print(f"  {count} x {error}")
    worst = max(p95 / most_ms, 2.0 * sum(load.errors.values()), 2.0 * lost)
    unit = "worst of: p95 over 300 ms (scaled to this machine), errors, lost writes"
    return Result("people", round(worst, 2), 1.0, unit)


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
