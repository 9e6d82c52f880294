"""Releases by a platform admin: when a version needs one before it is served, and what it covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from deployments.registry.domain.formats.format import Format
from deployments.registry.domain.scanning.verdicts import ScanReport


@dataclass(frozen=True, slots=True)
class Release:
    """The column `release`: who allowed the version, why, until when, and for which findings.

    The rule: a later scan that finds the same or less keeps the release, whichever scanner says so; a file that
    would run something further, or that a scanner can no longer read, needs a new one.
    """

    by: str
    reason: str
    until: datetime
    findings: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "until": self.until.isoformat(),
            "findings": sorted(self.findings),
        }

    def covers(self, report: ScanReport, at: datetime) -> bool:
        """Whether the admin decided on these findings, and the release has not ended."""
        return at < self.until and self.has_decided_on(report)

    def has_decided_on(self, report: ScanReport) -> bool:
        return report.decided_on <= self.findings

    def describe_worse(self, report: ScanReport) -> str:
        """Say why the findings need a new release, as sentences."""
        new = report.describe_new(self.findings)
        return (
            f"{f'New: {new}. ' if new else ''}The release by {self.by} covered the findings of the scan "
            "before. A platform admin has to release it again."
        )

    def describe(self) -> str:
        return f"Released by {self.by} until {self.until:%Y-%m-%d %H:%M} UTC: {self.reason}"


def from_json(data: Mapping[str, Any]) -> Release | None:
    if not data:
        return None
    until = datetime.fromisoformat(data["until"])
    return Release(data["by"], data["reason"], until, frozenset(data["findings"]))


def is_release_needed(kind: Format, report: ScanReport) -> bool:
    """Return whether a release is needed. It fails closed: for a format that carries code, and for files that
    are not known to be clean.
    """
    return kind.has_code or report.is_blocking


def describe_need(kind: Format, report: ScanReport) -> str:
    """Say why a release is needed, in a sentence. Empty if none is."""
    if report.is_blocking:
        return f"{report.describe()}."
    if kind.has_code:
        return (
            "The scanners found no dangerous code, but loading this format can run Python code. A "
            "platform admin has to release it."
        )
    return ""


def describe_findings(report: ScanReport) -> str:
    """Describe in a sentence what the scanners found in a file that nobody can release."""
    if report.is_blocking:
        return f"{report.describe()}."
    return "The scanners found no dangerous code."


def describe_no_engine(kind: Format, report: ScanReport, refusal: str = "") -> str:
    """Say why a release would have no effect, with the way out. `refusal` is that of the file's reader."""
    reason = refusal or f"No engine serves {kind.name}. {kind.export_advice}"
    return f"{describe_findings(report)} A release would have no effect. {reason}"
