"""The generator of the benchmark: many files, the same ones each time, and a marker that stays absent."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures import hostile_files


def test_a_thousand_files_are_the_same_each_time(tmp_path: Path) -> None:
    marker = tmp_path / "executed"

    first = list(hostile_files.generate(1000, marker, seed=8))

    assert first == list(hostile_files.generate(1000, marker, seed=8))
    assert first != list(hostile_files.generate(1000, marker, seed=9))
    assert len(first) == 1000
    assert len({file.body for file in first}) > 900
    assert all(file.body for file in first)
    assert not marker.exists()
