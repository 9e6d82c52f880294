"""The scanner modelscan: a second list of dangerous imports. Nothing is unpickled.

Its readers of Keras and SavedModel need TensorFlow and stay off; our own rules look for Lambda layers.
It does not install on Python 3.13 (as of 0.8.8), and the verdict then says so.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, Final

from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.scanning.findings import Findings
from deployments.registry.gateways import scanners
from deployments.registry.gateways.scanners import ScanTarget, pickle_files

_READERS: Final = (
    "modelscan.scanners.NumpyUnsafeOpScan",
    "modelscan.scanners.PickleUnsafeOpScan",
    "modelscan.scanners.PyTorchUnsafeOpScan",
)
# A member of an archive that holds weights.
_NOT_FOR_IT: Final = "SCAN_NOT_SUPPORTED"


class ModelScan:
    name: Final = scanners.MODELSCAN

    @cached_property
    def version(self) -> str:
        return scanners.installed_version(self.name)

    def applies_to(self, target: ScanTarget) -> bool:
        return pickle_files.may_hold_pickles(target)

    def scan(self, target: ScanTarget) -> Findings:
        from modelscan.modelscan import ModelScan as Engine  # noqa: PLC0415  not everywhere
        from modelscan.settings import DEFAULT_SETTINGS  # noqa: PLC0415  not everywhere

        settings = copy.deepcopy(DEFAULT_SETTINGS)
        for name, options in settings["scanners"].items():
            options["enabled"] = name in _READERS
        with pickle_files.named_by_content(target) as path:
            return _findings(Engine(settings).scan(str(path)))


def _findings(report: dict[str, Any]) -> Findings:
    findings = Findings()
    for issue in report["issues"]:
        findings.runs(printable(f"{issue['module']}.{issue['operator']}"))
    findings.names.sort()
    for error in report["errors"]:
        findings.cannot_read(printable(str(error.get("description", "it could not be read"))))
    for skipped in report["summary"]["skipped"]["skipped_files"]:
        if skipped["category"] != _NOT_FOR_IT:
            findings.cannot_read(printable(skipped["description"]))
    return findings
