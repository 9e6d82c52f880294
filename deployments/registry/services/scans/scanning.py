"""Scan the files of an artifact in the sandbox, failing closed: what times out, crashes or cannot be read
blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.scanning import rules
from deployments.registry.domain.scanning.verdicts import (
    FileScan,
    ScannerVerdict,
    ScanOutcome,
    ScanReport,
)
from deployments.registry.gateways import sandbox, scanners
from deployments.registry.gateways.sandbox import Broken, Died, Finished, Refused
from deployments.registry.gateways.sandbox_artifact import Access
from portal.core import clock

_TASK: Final = "deployments.registry.gateways.scanners.task:scan_files"
# Of one process: it may read so much in ranges, and fails for all of its files.
_FILES_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The files to scan. `pickle` is the path of the file whose format is a pickle, or empty; `copies` are
    files on disk.
    """

    artifact: Artifact
    pickle: str = ""
    copies: Mapping[str, Path] | None = None
    while_running: Callable[[], None] = lambda: None


def scan(request: ScanRequest) -> ScanReport:
    """Scan all files of an artifact. Errors of the store and of `while_running` pass through."""
    paths = sorted(request.artifact.sizes)
    files: list[FileScan] = []
    for start in range(0, len(paths), _FILES_AT_ONCE):
        files += _scan_some(request, paths[start : start + _FILES_AT_ONCE])
    return report_of(files)


def report_of(files: Sequence[FileScan]) -> ScanReport:
    return ScanReport(clock.now(), scanners.engines(), tuple(files), len(files))


def unreadable(path: str, problem: str, *, scanner: str = rules.NAME) -> FileScan:
    """Return the verdict of a file that a scanner could not get, or did not survive."""
    version = scanners.engines()[scanner]
    verdict = ScannerVerdict(scanner, version, ScanOutcome.UNREADABLE, problem=problem[:200])
    return FileScan(path, (verdict,))


def _scan_some(request: ScanRequest, paths: Sequence[str]) -> list[FileScan]:
    """Scan files in one process. If it dies, each file has one of its own, then each scanner: the verdict names
    the file and the scanner that failed, and the others still say what they find.
    """
    rows, failure = _run(request, paths)
    if not failure:
        return [_file_scan(path, row) for path, row in zip(paths, rows, strict=True)]
    if len(paths) > 1:
        return [scan for path in paths for scan in _scan_some(request, [path])]
    return [_scan_alone(request, paths[0])]


def _scan_alone(request: ScanRequest, path: str) -> FileScan:
    verdicts: list[ScannerVerdict] = []
    for scanner in scanners.engines():
        rows, failure = _run(request, [path], only=[scanner])
        alone = unreadable(path, failure, scanner=scanner) if failure else _file_scan(path, rows[0])
        verdicts += alone.verdicts
    return FileScan(path, tuple(verdicts))


def _run(
    request: ScanRequest, paths: Sequence[str], *, only: Sequence[str] = ()
) -> tuple[list[list[dict[str, Any]]], str]:
    """Return the verdicts of each file, or why there are none."""
    copies = {
        path: str((request.copies or {})[path]) for path in paths if path in (request.copies or {})
    }
    outcome = sandbox.run(
        _TASK,
        {"names": list(paths), "pickle": request.pickle, "copies": copies, "only": list(only)},
        limits=sandbox.limits_for(sum(request.artifact.sizes[path] for path in copies)),
        while_running=request.while_running,
        access=Access(request.artifact),
    )
    match outcome:
        case Finished(value):
            return value, ""
        case Died(_, detail):
            return [], detail
        case Refused(message) | Broken(message):
            return [], message


def _file_scan(path: str, rows: Sequence[Mapping[str, Any]]) -> FileScan:
    return FileScan(path, tuple(ScannerVerdict.from_json(row) for row in rows))
