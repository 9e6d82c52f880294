"""Compile the tests once: `python -m tests.compiled`, before the workers of a run start.

pytest compiles a test file, with its assertions rewritten, when it imports it. Workers import at the
same moment, so in a new clone each of them would compile every file.
"""

from __future__ import annotations

import compileall
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from _pytest.assertion import rewrite

_FOLDER: Final = Path(__file__).parent
_PROCESSES: Final = 2


class _Errors:
    """Of writing; the workers then compile for themselves."""

    def trace(self, message: str) -> None:
        print(message)


def compile_file(path: Path) -> None:
    """Leave what pytest would leave. A file with a mistake is left to pytest, which reports it."""
    if not (path.name.startswith("test_") or path.name == "conftest.py"):
        compileall.compile_file(path, quiet=2)
        return
    compiled = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(path, compiled) is not None:
        return
    try:
        source, code = rewrite._rewrite_test(path, None)  # type: ignore[arg-type]  # no option of ours changes it
    except (SyntaxError, ValueError):
        return
    rewrite.try_makedirs(compiled.parent)
    rewrite._write_pyc(_Errors(), code, source, compiled)  # type: ignore[arg-type]  # asked for no more


def main() -> None:
    files = [path for path in sorted(_FOLDER.rglob("*.py")) if "fixtures/exported" not in str(path)]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        list(pool.map(compile_file, files, chunksize=16))


if __name__ == "__main__":
    main()
