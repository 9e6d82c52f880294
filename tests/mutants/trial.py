"""One mutant at a time, in a copy of the tree: the tree itself is never changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.table import Mutant

REPOSITORY: Final = Path(__file__).resolve().parents[2]
_HOUSES: Final = ("client", "localcluster", "demo")
_PASSED: Final = 0
# Settings of this process that a run of the tests must not have.
_OWN: Final = ("PYTHONDONTWRITEBYTECODE", "PYTEST_")
_LONG_AGO: Final = 1_000_000_000


class Refused(Exception):
    """A mutant that no longer fits, or whose tests cannot be run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tests that noticed a mutant, without their parameters. None noticed one that is missed."""

    mutant: Mutant
    caught_by: tuple[str, ...]


def mutate(mutant: Mutant, tree: Path) -> str:
    """Return the file of the mutant with its wrong line. Raises Refused unless the right one occurs once."""
    text = (tree / mutant.file).read_text() if (tree / mutant.file).is_file() else ""
    count = text.count(mutant.old)
    if count != 1:
        raise Refused(f"{mutant.name}: {mutant.file} has {count} places with {mutant.old!r}")
    return text.replace(mutant.old, mutant.new)


def copy_tree(folder: Path) -> None:
    """Copy what git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        source, target = REPOSITORY / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def try_mutant(mutant: Mutant, tree: Path, *, number: int, most: int, workers: int = 0) -> Outcome:
    """Run the tests of a mutant in `tree`, a copy, until `most` of them failed. The copy is as before afterwards."""
    file, right = tree / mutant.file, (tree / mutant.file).read_text()
    wrong = mutate(mutant, tree)
    try:
        _write(file, wrong, 2 * number)
        return Outcome(mutant, _run(mutant, tree, most, workers))
    finally:
        _write(file, right, 2 * number + 1)


def _write(file: Path, text: str, second: int) -> None:
    """Write a file with a time of its own: Python tells compiled files apart by size and second."""
    file.write_text(text)
    os.utime(file, (_LONG_AGO + second, _LONG_AGO + second))


def _run(mutant: Mutant, tree: Path, most: int, workers: int) -> tuple[str, ...]:
    command = [
        *(sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "loadgroup"),
        *("-q", "-rfE", "--tb", "no", "-p", "no:cacheprovider", f"--maxfail={most}"),
        *mutant.tests,
    ]
    # What a test starts must import the copy too, and compile it once only.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_OWN)}
    paths = [tree, *(tree / house / "src" for house in _HOUSES)]
    done = subprocess.run(
        command,
        cwd=tree,
        env={**environment, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        check=False,
        capture_output=True,
        text=True,
    )
    # xdist ends a run that has had enough failures as interrupted.
    caught_by = names_of(done.stdout.splitlines())
    if done.returncode != _PASSED and not caught_by:
        raise Refused(f"{mutant.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return caught_by


def names_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the failed tests of a summary, without parameters, groups of workers and reasons."""
    failed = (line.split(" ", 1)[1] for line in lines if line.startswith(("FAILED ", "ERROR ")))
    names = (name.partition(" - ")[0].partition("[")[0].partition("@")[0] for name in failed)
    return tuple(sorted({name.strip() for name in names if "::" in name}))
