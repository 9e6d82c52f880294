"""The suite's own rule: what fails on a starved machine is run again, and nothing else is."""

from __future__ import annotations

from itertools import count
from typing import Protocol

import pytest

from tests import starvation
from tests.starvation import ProcessorTime

pytest_plugins = ["pytester"]


class Run(Protocol):
    def __call__(self, *, stolen: float, failures: int) -> tuple[pytest.RunResult, str]: ...


# Counts its runs in a file. The fixture is of the session, and fails as often as the file says.
MODULE = """
import pathlib
import pytest

RUNS = pathlib.Path(__file__).with_name("runs")

@pytest.fixture(scope="session")
def server():
    RUNS.write_text(RUNS.read_text() + "started ")
    yield
    RUNS.write_text(RUNS.read_text() + "ended ")

def test_that_fails_at_first(server):
    RUNS.write_text(RUNS.read_text() + "ran ")
    assert RUNS.read_text().count("ran") > {failures}

def test_after_it(server):
    pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_with(*, stolen: float, failures: int) -> tuple[pytest.RunResult, str]:
        seconds = count()
        monkeypatch.setattr(
            starvation, "read_time", lambda: ProcessorTime(stolen * (now := next(seconds)), now)
        )
        path = pytester.makepyfile(MODULE.format(failures=failures))
        runs = path.with_name("runs")
        runs.write_text("")
        without = ("no:randomly", "no:django", "no:timeout")
        options = [f"-p{name}" for name in ("tests.starvation", *without)]
        result = pytester.runpytest_inprocess(*options)
        return result, runs.read_text()

    return run_with


def test_a_failure_on_a_starved_machine_is_run_again_from_nothing(run: Run) -> None:
    result, runs = run(stolen=0.5, failures=2)

    result.assert_outcomes(passed=2)
    assert runs == "started ran ended started ran ended started ran ended "
    result.stdout.fnmatch_lines(["*run again because the host took*", "*fails_at_first: 50%, 50%"])


def test_it_fails_in_the_end(run: Run) -> None:
    result, runs = run(stolen=0.5, failures=9)

    result.assert_outcomes(passed=1, failed=1)
    assert runs.count("ran") == starvation.TRIES


def test_a_failure_on_a_machine_with_its_processor_is_a_failure(run: Run) -> None:
    result, runs = run(stolen=0.14, failures=1)

    result.assert_outcomes(passed=1, failed=1)
    assert runs == "started ran ended "
    assert "run again" not in result.stdout.str()
