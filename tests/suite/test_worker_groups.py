"""The suite's own rule: the tests of a module run in one worker, and what they share is started once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

_ROOT = Path(__file__).resolve().parents[2]
# A line for each start of what the tests of the module share.
_MODULE = """
import pathlib
import pytest

STARTED = pathlib.Path({folder!r}) / "started"

@pytest.fixture(scope="module")
def server():
    with STARTED.open("a") as lines:
        print(__name__, file=lines)

@pytest.mark.parametrize("number", range(8))
def test_with_it(server, number):
    pass
"""


def test_what_a_module_shares_is_started_once_in_a_run_of_several_workers(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    names = ["test_one", "test_other", "test_third"]
    pytester.makepyfile(**dict.fromkeys(names, _MODULE.format(folder=str(pytester.path))))
    without = ("no:randomly", "no:django", "no:timeout")
    options = [f"-p{name}" for name in ("tests.worker_groups", *without)]

    result = pytester.runpytest_subprocess(
        "-n2", "--dist", "loadgroup", "--no-loadscope-reorder", *options
    )

    result.assert_outcomes(passed=24)
    started = (pytester.path / "started").read_text().split()
    assert Counter(started) == dict.fromkeys(names, 1)
