"""Scan files that can contain pickled Python code; the only user of picklescan. Nothing is
unpickled.

Runs in sandbox.py only: an archive can expand, and a pickle can block a scanner for long.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from picklescan import scanner

from deployments.registry.domain.not_servable import printable

_EXPANDS_AT_MOST: Final = 20
_ALWAYS_ALLOWED_BYTES: Final = 2**30
_MOST_NAMES: Final = 20
_LONGEST_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class ScanReport:
    """`dangerous` names what unpickling would call. `is_readable` False: it could not be scanned."""

    dangerous: tuple[str, ...]
    suspicious: tuple[str, ...]
    is_readable: bool
    problem: str = ""


def scan_file(argument: dict[str, Any]) -> dict[str, Any]:
    """For the sandbox: {"path"} to {"dangerous", "problem"}; a problem says why it was not scanned."""
    report = scan(Path(argument["path"]))
    problem = "" if report.is_readable else report.problem or "the file cannot be read"
    return {
        "dangerous": [printable(name)[:_LONGEST_TEXT] for name in report.dangerous[:_MOST_NAMES]],
        "problem": printable(problem)[:_LONGEST_TEXT],
    }


def scan(path: Path) -> ScanReport:
    try:
        if zipfile.is_zipfile(path) and _is_bomb(path):
            return ScanReport((), (), is_readable=False, problem="the archive expands too far")
        result = scanner.scan_file_path(str(path))
    except (
        zipfile.BadZipFile,
        scanner.GenOpsError,
        scanner.InvalidMagicError,
        scanner.TarError,
        ValueError,
        EOFError,
        LookupError,
        OSError,
    ) as error:
        return ScanReport((), (), is_readable=False, problem=f"{type(error).__name__}: {error}")
    return ScanReport(
        dangerous=_names(result, scanner.SafetyLevel.Dangerous),
        suspicious=_names(result, scanner.SafetyLevel.Suspicious),
        is_readable=not result.scan_err,
        problem="the pickle is malformed" if result.scan_err else "",
    )


def _names(result: scanner.ScanResult, level: scanner.SafetyLevel) -> tuple[str, ...]:
    names = {f"{item.module}.{item.name}" for item in result.globals if item.safety == level}
    return tuple(sorted(names))


def _is_bomb(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        expanded = sum(item.file_size for item in archive.infolist())
    allowed = max(_ALWAYS_ALLOWED_BYTES, path.stat().st_size * _EXPANDS_AT_MOST)
    return expanded > allowed
