"""`python -m portal.management.sizes`: list what is large, for a reader to look at.

A report and no check: a file is cut where its topic ends, not where a number says.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from portal.management import client_answers

_REPOSITORY = Path(__file__).resolve().parents[2]
_PACKAGES = ("portal", "deployments", "fleet", "client/src")
_LONG_FILE = 400
_LONG_FUNCTION = 60
_FULL_FOLDER = 30


def main() -> None:
    files = sorted(_sources())
    lines = [*_long_files(files), *_long_functions(files), *_full_folders(files)]
    print("\n".join(lines) or "Nothing is large.")


def _sources() -> Iterator[Path]:
    for package in _PACKAGES:
        for path in (_REPOSITORY / package).rglob("*.py"):
            if "migrations" not in path.parts and path != client_answers.ANSWERS:
                yield path


def _long_files(files: list[Path]) -> Iterator[str]:
    for path in files:
        if (count := len(path.read_text().splitlines())) > _LONG_FILE:
            yield f"{_name(path)}: {count} lines"


def _long_functions(files: list[Path]) -> Iterator[str]:
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            if count > _LONG_FUNCTION:
                yield f"{_name(path)}:{node.lineno} {node.name}: {count} lines"


def _full_folders(files: list[Path]) -> Iterator[str]:
    for folder, count in sorted(Counter(path.parent for path in files).items()):
        if count > _FULL_FOLDER:
            yield f"{_name(folder)}: {count} files"


def _name(path: Path) -> str:
    return str(path.relative_to(_REPOSITORY))


if __name__ == "__main__":
    main()
