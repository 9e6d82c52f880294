"""The processor time of a test run: of each house, and of what all tests share.

A test's seconds are those of its worker and of the processes that ended while it ran. A server that outlives a test
counts for the test during which it ends.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from typing import Any

import psutil
import pytest

_HOUSES = ("client", "localcluster", "demo", "contract", "e2e")
# A process that started neither this one nor one of its children: PostgreSQL detaches itself.
_detached: list[int] = []
_last: list[float] = []


def house_of(test: str) -> str:
    """Return the house of a test by its address (`tests/client/…`): one beside the portal, or tests of all together."""
    folder = test.split("/")[1] if test.count("/") else ""
    return folder if folder in _HOUSES else "portal"


def count_detached(pid: int) -> None:
    """Count a process, and its children, although it is not a child of the run."""
    _detached.append(pid)


def read_own() -> float:
    """Return the seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def read_run() -> float:
    """Return the seconds of the whole run so far: also those of children that still run."""
    running = [*psutil.Process().children(recursive=True)]
    for pid in _detached:
        server = psutil.Process(pid)
        running += [server, *server.children(recursive=True)]
    return read_own() + sum(map(_read_other, running))


def _read_other(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give each report what was spent since the one before it."""
    report = yield
    now = read_own()
    # A field of its own, which xdist sends along.
    vars(report)["processor_seconds"] = now - (_last[0] if _last else now)
    _last[:] = [now]
    return report


def pytest_collection_finish() -> None:
    _last[:] = [read_own()]


def sum_by_house(reports: Mapping[str, list[Any]]) -> dict[str, tuple[float, float]]:
    """Return the wall and processor seconds of each house, over all workers."""
    sums: dict[str, tuple[float, float]] = {}
    for report in (report for group in reports.values() for report in group):
        if isinstance(report, pytest.TestReport):
            house = house_of(report.nodeid)
            wall, processor = sums.get(house, (0.0, 0.0))
            spent: float = getattr(report, "processor_seconds", 0.0)
            sums[house] = wall + report.duration, processor + spent
    return sums


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seconds of each house, then those of the run, of which the houses have a part."""
    sums = sum_by_house(terminalreporter.stats)
    walls = ", ".join(f"{house} {wall:.0f} s" for house, (wall, _) in sorted(sums.items()))
    spent = ", ".join(f"{house} {spent:.0f} s" for house, (_, spent) in sorted(sums.items()))
    terminalreporter.write_line(f"Time of the tests by house: {walls}")
    whole = read_run()
    shared = whole - sum(spent for _, spent in sums.values())
    terminalreporter.write_line(
        f"Processor time: {whole:.0f} s ({spent}; imports, collection and databases {shared:.0f} s)"
    )
