from __future__ import annotations

import pytest

from fleet.clusters.domain import keda_releases


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [
        ("2.20.1", False),
        ("v2.20.0", False),
        ("2.21.0-rc1", False),
        ("3.0.0", False),
        ("main", False),
        ("v1alpha1", False),
        ("", False),
        ("2.19.0", True),
        ("v2.9.3", True),
    ],
)
def test_only_a_release_that_is_known_to_be_too_old_is_refused(
    version: str, is_refused: bool
) -> None:
    problem = keda_releases.problem_with(version)

    assert bool(problem) is is_refused
    assert not is_refused or f"KEDA {version.removeprefix('v')} is installed; 2.20" in problem
