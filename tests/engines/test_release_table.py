"""The table's file of the installed release says what the engine says of itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deployments.engines.domain import table
from deployments.engines.domain.table import EngineRelease
from portal import default_images
from tests.engines import build, describe_engine
from tests.engines.running import PROGRAM

_HELP = "--help"


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    python = Path(os.environ[PROGRAM]).with_name("python")
    done = subprocess.run(
        [str(python), describe_engine.__file__],
        env={"PATH": os.environ["PATH"], "VLLM_NO_USAGE_STATS": "1"},
        cwd=python.parent,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture
def release() -> EngineRelease:
    row = table.find_vllm_release(default_images.VLLM)
    assert row is not None
    # The default is a release that these tests ran.
    assert row.name == build.RELEASE
    return row


@pytest.mark.parametrize(
    "part", ["architectures", "quantization", "tool_parsers", "reasoning_parsers"]
)
def test_its_lists_are_those_of_the_engine(
    described: dict[str, Any], release: EngineRelease, part: str
) -> None:
    assert sorted(getattr(release, part)) == described[part]


def test_its_arguments_are_those_of_the_engine(
    described: dict[str, Any], release: EngineRelease
) -> None:
    """A choice that the sources list may be left out while the program runs; none is added."""
    arguments: dict[str, Any] = described["arguments"]

    assert set(arguments) - {_HELP} - set(release.arguments) == set()
    for name in set(arguments) & set(release.arguments):
        takes, stated = arguments[name], release.arguments[name]
        if isinstance(stated, list):
            assert set(takes or stated) <= set(stated), name
        elif stated is not None:
            assert takes == stated, name
