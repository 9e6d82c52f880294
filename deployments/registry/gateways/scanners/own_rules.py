"""Our own rules as a scanner. They apply to every file."""

from __future__ import annotations

from typing import Final

from deployments.registry.domain.scanning import rules
from deployments.registry.domain.scanning.findings import Findings
from deployments.registry.gateways.scanners import ScanTarget


class OwnRules:
    name: Final = rules.NAME
    version: Final = rules.VERSION

    def applies_to(self, target: ScanTarget) -> bool:
        return True

    def scan(self, target: ScanTarget) -> Findings:
        with target.open() as file:
            return rules.scan(file, size=target.size, name=target.name, is_pickle=target.is_pickle)
