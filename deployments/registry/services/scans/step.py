"""The step of an examination that scans the files, and what its verdict means for the version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deployments.models import ModelVersion
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import pickles
from deployments.registry.domain.formats.catalogue import Detected
from deployments.registry.domain.formats.format import Format
from deployments.registry.domain.scanning import releases, verdicts
from deployments.registry.domain.scanning.verdicts import ScanReport
from deployments.registry.gateways import scanners
from deployments.registry.services.examination import sandboxed_steps
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.scans import scanning
from deployments.registry.services.scans.scanning import ScanRequest
from portal.core import clock

_STEP: Final = "Scan"
_FIX: Final = (
    "Export the model to ONNX, which contains no code, or ask a platform admin to release it."
)


def scan(
    version: ModelVersion,
    artifact: Artifact,
    copies: Mapping[str, Path],
    detected: Detected,
    checklist: Checklist,
) -> ScanReport:
    """Scan a version. The same objects and engines have the same verdict: a version that is verified again
    keeps it. Raises FileRefused where the worker was killed twice, and LeaseLost.
    """
    known = verdicts.from_json(version.scan)
    if known is not None and verdicts.describe_engines(scanners.engines()) == version.scan_engines:
        return known
    checklist.running(_STEP, "scanning for code")
    with sandboxed_steps.count_deaths(version, _STEP, checklist):
        return scanning.scan(
            ScanRequest(
                artifact,
                pickle=pickle_of(detected),
                copies=copies,
                while_running=checklist.keep_alive_unless_stopped,
            )
        )


def pickle_of(detected: Detected) -> str:
    return detected.main if detected.format is pickles.PICKLE else ""


def columns_of(report: ScanReport) -> dict[str, Any]:
    return {
        "scan": report.to_json(),
        "scan_engines": verdicts.describe_engines(report.engines),
    }


def decide(version: ModelVersion, kind: Format, report: ScanReport, checklist: Checklist) -> str:
    """Return the reason for a quarantine, or empty. Marks the step of the checklist."""
    if not releases.is_release_needed(kind, report):
        checklist.pass_step(_STEP, report.describe_scanned())
        return ""
    need = releases.describe_need(kind, report)
    release = releases.from_json(version.release)
    if release is not None and release.covers(report, clock.now()):
        checklist.warn_step(_STEP, f"{need} {release.describe()}")
        return ""
    if not kind.can_be_released:
        need = releases.describe_no_engine(kind, report)
        checklist.refuse_step(_STEP, need)
        return need
    checklist.refuse_step(_STEP, f"{need} {_FIX}")
    return f"{need} {_FIX}"
