"""The scanner picklescan, which lists what pickles import and knows which of it is dangerous. Nothing is
unpickled.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

from picklescan import scanner

from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.scanning.findings import Findings
from deployments.registry.gateways import scanners
from deployments.registry.gateways.scanners import ScanTarget, pickle_files


class PickleScan:
    name: Final = scanners.PICKLESCAN

    @cached_property
    def version(self) -> str:
        return scanners.installed_version(self.name)

    def applies_to(self, target: ScanTarget) -> bool:
        return pickle_files.may_hold_pickles(target)

    def scan(self, target: ScanTarget) -> Findings:
        findings = Findings()
        with pickle_files.named_by_content(target) as path:
            self._scan(path, findings)
        return findings

    def _scan(self, path: Path, findings: Findings) -> None:
        result = scanner.scan_file_path(str(path))
        for item in result.globals:
            if item.safety == scanner.SafetyLevel.Dangerous:
                findings.runs(printable(f"{item.module}.{item.name}"))
        findings.names.sort()
        if result.scan_err:
            findings.cannot_read("the pickle is malformed")
