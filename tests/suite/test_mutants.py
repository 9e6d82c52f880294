"""The table of mutants fits the product, and each one is caught by a test that is still there."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import trial
from tests.mutants.__main__ import RECORD
from tests.mutants.table import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_one_wrong_line_of_the_product(mutant: Mutant) -> None:
    """Change the table with the line: `old` is what the product has now."""
    wrong = trial.mutate(mutant, trial.REPOSITORY)

    assert wrong != (trial.REPOSITORY / mutant.file).read_text()
    if mutant.file.endswith(".py"):
        ast.parse(wrong)
    assert [path for path in mutant.tests if not (trial.REPOSITORY / path).exists()] == []


def test_a_text_that_is_gone_is_refused() -> None:
    gone = replace(MUTANTS[0], name="gone", old="no such line")

    with pytest.raises(
        trial.Refused, match=r"^gone: .*decide\.py has 0 places with 'no such line'"
    ):
        trial.mutate(gone, trial.REPOSITORY)


def test_every_mutant_is_caught_by_a_test_that_exists() -> None:
    record = json.loads(RECORD.read_text())

    assert sorted(record) == sorted(mutant.name for mutant in MUTANTS)
    without = [name for name, tests in record.items() if not any(map(_exists, tests))]
    assert without == [], "run: python -m tests.mutants --record NAME"


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    file = trial.REPOSITORY / path
    return file.is_file() and f"def {name.rpartition('::')[2]}(" in file.read_text()


def test_a_mutant_is_tried_in_a_copy_and_taken_back(tmp_path: Path) -> None:
    """The test that notices is one that passes on the right line."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:django -p no:randomly\n")
    (tmp_path / "limits.py").write_text("MOST = 3\n")
    (tmp_path / "test_limits.py").write_text(
        "import limits\nimport pytest\n\n\n"
        "@pytest.mark.parametrize('number', [2, 3])\n"
        "def test_most(number):\n    assert number <= limits.MOST\n\n\n"
        "def test_other():\n    pass\n"
    )
    mutant = Mutant(
        "less", "limits.py", "MOST = 3", "MOST = 2", "3 is too much", ("test_limits.py",)
    )

    caught = trial.try_mutant(mutant, tmp_path, number=0, most=5, workers=0)
    missed = trial.try_mutant(
        replace(mutant, new="MOST = 4"), tmp_path, number=1, most=5, workers=0
    )

    assert caught.caught_by == ("test_limits.py::test_most",)
    assert missed.caught_by == ()
    assert (tmp_path / "limits.py").read_text() == "MOST = 3\n"


def test_parameters_groups_and_reasons_are_no_part_of_a_test() -> None:
    lines = [
        "FAILED tests/a/test_b.py::test_c[x - y]@tests/a/test_b.py - AssertionError: no",
        "FAILED tests/a/test_b.py::test_c[z]@tests/a/test_b.py",
        "ERROR tests/a/test_b.py::test_d@group - ValueError",
        "2 failed in 3 s",
    ]

    assert trial.names_of(lines) == ("tests/a/test_b.py::test_c", "tests/a/test_b.py::test_d")
