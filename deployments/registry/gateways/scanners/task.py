"""The task of the sandbox that scans one file with each scanner that applies to it."""

from __future__ import annotations

import hashlib
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.pickles.opening import CannotOpen
from deployments.registry.domain.scanning.verdicts import MAX_FINDINGS, ScanOutcome
from deployments.registry.gateways.scanners import Scanner, ScanTarget
from deployments.registry.gateways.scanners.modelscan_scanner import ModelScan
from deployments.registry.gateways.scanners.own_rules import OwnRules
from deployments.registry.gateways.scanners.picklescan_scanner import PickleScan

_LONGEST_TEXT: Final = 200
# What libraries raise for a damaged file.
_UNREADABLE: Final = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error, CannotOpen),
)
_SCANNERS: Final[tuple[Scanner, ...]] = (OwnRules(), PickleScan(), ModelScan())


def scan_files(argument: dict[str, Any], artifact: Artifact) -> list[list[dict[str, Any]]]:
    """Scan files in the sandbox: {"names", "pickle", "copies", "only"} to the ScannerVerdicts of each file as
    JSON.

    `pickle` is the name of the file whose format is a pickle, `copies` are paths on disk by name, `only`
    names scanners; empty means all.
    """
    chosen = argument["only"]
    scanners = [item for item in _SCANNERS if not chosen or item.name in chosen]
    return [
        [_verdict(scanner, _target(name, argument, artifact)) for scanner in scanners]
        for name in argument["names"]
    ]


def _target(name: str, argument: dict[str, Any], artifact: Artifact) -> ScanTarget:
    copy = argument["copies"].get(name)
    return ScanTarget(name, name == argument["pickle"], artifact, Path(copy) if copy else None)


def _verdict(scanner: Scanner, target: ScanTarget) -> dict[str, Any]:
    findings: tuple[str, ...] = ()
    problem = ""
    if not scanner.applies_to(target):
        outcome = ScanOutcome.SKIPPED
    elif not scanner.version:
        outcome = ScanOutcome.UNAVAILABLE
    else:
        findings, problem = _scan(scanner, target)
        outcome = _outcome(findings, problem)
    return {
        "scanner": scanner.name,
        "version": scanner.version,
        "outcome": str(outcome),
        "findings": _shortened(findings),
        "problem": problem[:_LONGEST_TEXT],
    }


def _scan(scanner: Scanner, target: ScanTarget) -> tuple[tuple[str, ...], str]:
    """Scan a file. An error that is not in _UNREADABLE ends the process, and the worker then runs each scanner
    alone.
    """
    try:
        result = scanner.scan(target)
    except _UNREADABLE as error:
        return (), printable(f"{type(error).__name__}: {error}")
    return tuple(result.names), result.problem


def _shortened(findings: tuple[str, ...]) -> list[str]:
    """Shorten the findings. The rest is counted with a digest, so that another list never looks the same."""
    names = [name[:_LONGEST_TEXT] for name in findings]
    if len(names) <= MAX_FINDINGS:
        return names
    left_out = findings[MAX_FINDINGS - 1 :]
    digest = hashlib.sha256("\n".join(left_out).encode(errors="replace")).hexdigest()[:8]
    return [*names[: MAX_FINDINGS - 1], f"{len(left_out)} more ({digest})"]


def _outcome(findings: tuple[str, ...], problem: str) -> ScanOutcome:
    if findings:
        return ScanOutcome.CODE
    return ScanOutcome.UNREADABLE if problem else ScanOutcome.CLEAN
