"""A test that fails while the host takes the processor away is run again, with all its fixtures anew.

Triton, Envoy and Chromium have limits of their own in seconds, which no test can lengthen: a failure
then says nothing about the product. On a machine that has its processor nothing is run twice, and the
summary names each test that was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psutil
import pytest
from _pytest.runner import runtestprotocol

# Of the processor time while the test ran, what the host gave to others ("steal").
MOST_STOLEN: Final = 0.15
TRIES: Final = 3
_PROPERTY: Final = "run again because the host took processor time"


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """In seconds, of all processors together since the machine started."""

    stolen: float
    whole: float

    def stolen_share_since(self, before: ProcessorTime) -> float:
        whole = self.whole - before.whole
        return (self.stolen - before.stolen) / whole if whole > 0 else 0.0


def read_time() -> ProcessorTime:
    times = psutil.cpu_times()
    return ProcessorTime(getattr(times, "steal", 0.0), sum(times))


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    where = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**where)
    shares: list[str] = []
    while True:
        before = read_time()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        share = read_time().stolen_share_since(before)
        is_failure = any(report.failed for report in reports)
        if not is_failure or share < MOST_STOLEN or len(shares) + 1 == TRIES:
            break
        shares.append(f"{share:.0%}")
        # What the failed try left may not be there for the next one, nor for other tests.
        item.session._setupstate.teardown_exact(None)
    for report in reports:
        if shares:
            report.user_properties.append((_PROPERTY, ", ".join(shares)))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(**where)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    again = {
        report.nodeid: value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == _PROPERTY
    }
    if again:
        terminalreporter.section(_PROPERTY)
    for name, shares in sorted(again.items()):
        terminalreporter.write_line(f"{name}: {shares}")
