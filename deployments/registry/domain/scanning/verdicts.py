"""The typed result of a scan: one verdict per file and scanner, with the scanner's version and the time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

MAX_FINDINGS: Final = 20
_MAX_LISTED: Final = 5
# Clean verdicts of further files are counted only.
_MAX_FILES: Final = 100
_MAX_DECIDED: Final = 1000


class ScanOutcome(StrEnum):
    """The outcome of a scan. `skipped`: the scanner does not apply to the format; `unavailable`: it is not
    installed where the worker runs.
    """

    CLEAN = "clean"
    CODE = "code"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"
    UNAVAILABLE = "unavailable"


# Outcomes that block, the worse one first: what could not be read is not served.
BLOCKING: Final = (ScanOutcome.CODE, ScanOutcome.UNREADABLE)
# Outcomes of scanners that read nothing of a file, so that they say nothing about it.
_UNREAD: Final = (ScanOutcome.SKIPPED, ScanOutcome.UNAVAILABLE)
_WORST_FIRST: Final = (*BLOCKING, ScanOutcome.CLEAN)


def _worst_of(outcomes: Iterable[ScanOutcome]) -> ScanOutcome:
    """Return the worst outcome. Only a scanner that read a file says that it is clean."""
    present = set(outcomes)
    return next((worst for worst in _WORST_FIRST if worst in present), ScanOutcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class ScannerVerdict:
    """The verdict of one scanner on one file. `findings` name what the file would run; `problem` says why it
    could not be scanned.
    """

    scanner: str
    version: str
    outcome: ScanOutcome
    findings: tuple[str, ...] = ()
    problem: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ScannerVerdict:
        return cls(
            scanner=data["scanner"],
            version=data["version"],
            outcome=ScanOutcome(data["outcome"]),
            findings=tuple(data["findings"]),
            problem=data["problem"],
        )


@dataclass(frozen=True, slots=True)
class FileScan:
    path: str
    verdicts: tuple[ScannerVerdict, ...]

    @property
    def outcome(self) -> ScanOutcome:
        return _worst_of(verdict.outcome for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The column `scan` of a version. `engines` are the versions of the scanners by name, also of those
    that are not installed (empty). The column lists some files only; `stored_decision` is of all.
    """

    at: datetime
    engines: Mapping[str, str]
    files: tuple[FileScan, ...]
    file_count: int
    stored_decision: frozenset[str] = frozenset()

    @property
    def outcome(self) -> ScanOutcome:
        return _worst_of(scan.outcome for scan in self.files)

    @property
    def is_blocking(self) -> bool:
        return self.outcome in BLOCKING

    def describe_scanned(self) -> str:
        """List the scanners that read a file, then those to which no file applied."""
        ran = {
            verdict.scanner: verdict.version
            for scan in self.files
            for verdict in scan.verdicts
            if verdict.outcome not in _UNREAD
        }
        idle = {name: version for name, version in self.engines.items() if name not in ran}
        skipped = ", ".join(sorted(name for name, version in idle.items() if version))
        text = f"{self.outcome}: {describe_engines(ran)}" if ran else "not scanned"
        return f"{text}; not for this format: {skipped}" if skipped else text

    @property
    def findings(self) -> tuple[str, ...]:
        return tuple(sorted(set(self._all("findings"))))

    @property
    def decided_on(self) -> frozenset[str]:
        """The findings that a person decides on, as digests: what each file would run, whichever scanner
        reports it, and which files a scanner could not read. A very long list is one digest of all.
        """
        if self.stored_decision:
            return self.stored_decision
        rows = {
            _digest_of((scan.path, verdict.outcome, what))
            for scan in self.files
            for verdict in scan.verdicts
            if verdict.outcome in BLOCKING
            for what in verdict.findings or (verdict.scanner,)
        }
        return frozenset(rows if len(rows) <= _MAX_DECIDED else [_digest_of(sorted(rows))])

    def describe_new(self, released: frozenset[str]) -> str:
        """List the findings that a release does not cover. Empty if none of them has a name."""
        names = {
            name
            for scan in self.files
            for verdict in scan.verdicts
            if verdict.outcome is ScanOutcome.CODE
            for name in verdict.findings
            if _digest_of((scan.path, verdict.outcome, name)) not in released
        }
        return _listed(tuple(sorted(names)))

    def describe(self) -> str:
        """Return a sentence without its full stop, for a person who decides. Empty if everything is clean."""
        if self.outcome is ScanOutcome.CODE:
            return f"Loading it would run {_listed(self.findings)}"
        if self.outcome is ScanOutcome.UNREADABLE:
            return f"It could not be scanned: {self._first_problem()}"
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the column, with at most _MAX_FILES files, those with findings first."""
        order = [*_WORST_FIRST, ScanOutcome.SKIPPED]
        first = sorted(self.files, key=lambda scan: order.index(scan.outcome))[:_MAX_FILES]
        return {
            "at": self.at.isoformat(),
            "engines": dict(self.engines),
            "files": [
                {"path": scan.path, "verdicts": [asdict(verdict) for verdict in scan.verdicts]}
                for scan in first
            ],
            "file_count": self.file_count,
            "decided_on": sorted(self.decided_on),
        }

    def _first_problem(self) -> str:
        for scan in self.files:
            for verdict in scan.verdicts:
                if verdict.outcome is ScanOutcome.UNREADABLE:
                    return f"{verdict.problem} ({verdict.scanner})"
        return ""

    def _all(self, name: str) -> Iterable[str]:
        for scan in self.files:
            for verdict in scan.verdicts:
                yield from getattr(verdict, name)


def from_json(data: Mapping[str, Any]) -> ScanReport | None:
    """Read the column. None for a version that was not scanned."""
    if not data:
        return None
    return ScanReport(
        at=datetime.fromisoformat(data["at"]),
        engines=data["engines"],
        files=tuple(
            FileScan(row["path"], tuple(ScannerVerdict.from_json(item) for item in row["verdicts"]))
            for row in data["files"]
        ),
        file_count=data["file_count"],
        stored_decision=frozenset(data["decided_on"]),
    )


def describe_engines(engines: Mapping[str, str]) -> str:
    """List the scanners and their versions, for example "modelscan 0.8.8, picklescan 1.0.5, rules 1". Model
    versions are re-scanned when it changes.
    """
    return ", ".join(
        f"{name} {version or 'not installed'}" for name, version in sorted(engines.items())
    )


def _digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _MAX_LISTED
    text = ", ".join(names[:_MAX_LISTED])
    return f"{text} and {more} more" if more > 0 else text
