"""The suite's own rule: a run says how much processor time each house took, children included."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import processor_time

pytest_plugins = ["pytester"]

_ROOT = Path(__file__).resolve().parents[2]
# A test that works itself, and one that lets a child work.
_BUSY = """
import subprocess
import sys
import time

BUSY = "import time\\nwhile time.process_time() < 0.5: pass"

def test_itself():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass

def test_by_a_child():
    subprocess.run([sys.executable, "-S", "-c", BUSY], check=True)
"""


def test_it_counts_tests_and_the_processes_that_they_start(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    folder = pytester.mkdir("tests")
    for house in ("client", "fleet"):
        (folder / house).mkdir()
        (folder / house / f"test_{house}.py").write_text(_BUSY)
    without = ("no:randomly", "no:django", "no:timeout", "no:schemathesis")
    options = [f"-p{name}" for name in ("tests.processor_time", *without)]

    result = pytester.runpytest_subprocess("-n2", *options)

    result.assert_outcomes(passed=4)
    line = next(line for line in result.outlines if line.startswith("Processor time: "))
    match = re.fullmatch(
        r"Processor time: (\d+) s \(client (\d+) s, portal (\d+) s; "
        r"imports, collection and databases (\d+) s\)",
        line,
    )
    assert match, line
    whole, client, portal, shared = map(int, match.groups())
    assert client >= 1
    assert portal >= 1
    # Each is rounded for itself.
    assert abs(whole - client - portal - shared) <= 2


@pytest.mark.parametrize(
    ("test", "house"),
    [
        ("tests/client/test_login.py::test_x", "client"),
        ("tests/localcluster/controllers/test_jobs.py::test_x", "localcluster"),
        ("tests/deployments/batch/test_jobs.py::test_x", "portal"),
        ("test_alone.py::test_x", "portal"),
    ],
)
def test_the_house_of_a_test_is_its_folder(test: str, house: str) -> None:
    assert processor_time.house_of(test) == house
