"""A thousand hostile files: none is executed, none crashes or holds the worker, each has a verdict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deployments.registry.domain.scanning.verdicts import BLOCKING, FileScan, ScanOutcome
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import DeathCause, Died
from deployments.registry.services.scans import scanning
from deployments.registry.services.scans.scanning import ScanRequest
from tests.artifacts import MemoryArtifact
from tests.fixtures import hostile_disguises, hostile_files
from tests.fixtures.hostile_files import HostileFile

FILES = 1000


def artifact_of(files: list[HostileFile]) -> MemoryArtifact:
    contents = {f"{n:04}/{file.filename}": file.body for n, file in enumerate(files)}
    return MemoryArtifact(contents, {path: len(body) for path, body in contents.items()})


def scan_one(file: HostileFile, *, is_pickle: bool) -> FileScan:
    artifact = artifact_of([file])
    (path,) = artifact.sizes
    (scan,) = scanning.scan(ScanRequest(artifact, pickle=path if is_pickle else "")).files
    return scan


def test_every_disguise_is_blocked_with_a_reason_and_executes_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "executed"

    for file in hostile_disguises.all_kinds(marker):
        scan = scan_one(file, is_pickle=file.filename.endswith((".pkl", ".joblib")))

        assert scan.outcome in BLOCKING, file.name
        verdicts = [verdict for verdict in scan.verdicts if verdict.outcome in BLOCKING]
        assert all(verdict.findings or verdict.problem for verdict in verdicts), file.name
        assert not marker.exists(), file.name


def test_a_thousand_files_end_with_a_verdict_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "executed"
    files = list(hostile_files.generate(FILES, marker, seed=11))
    outcomes: list[str] = []
    run = sandbox.run

    def counted(*arguments: Any, **options: Any) -> sandbox.Outcome:
        outcome = run(*arguments, **options)
        outcomes.append(type(outcome).__name__)
        return outcome

    monkeypatch.setattr(sandbox, "run", counted)

    report = scanning.scan(ScanRequest(artifact_of(files)))

    # A hundred files at a time: none of them ended the process.
    assert outcomes == ["Finished"] * 10

    assert len(report.files) == report.file_count == FILES
    assert all({row.scanner for row in scan.verdicts} >= {"rules"} for scan in report.files)
    assert Counter(scan.outcome for scan in report.files)[ScanOutcome.CODE] > 100
    assert not marker.exists()


def test_an_opcode_that_is_cut_off_blocks_its_file_and_not_the_process() -> None:
    scan = scan_one(HostileFile("cut off", "t2.pt", b"(J\x01\x00"), is_pickle=True)

    outcomes = {row.scanner: (row.outcome, row.problem) for row in scan.verdicts}
    problem = "the pickle is malformed: unpack requires a buffer of 4 bytes"
    assert outcomes["rules"] == (ScanOutcome.UNREADABLE, problem)


@pytest.mark.parametrize("cause", [DeathCause.TIME, DeathCause.CRASH])
def test_a_scanner_that_dies_blocks_and_is_named(
    monkeypatch: pytest.MonkeyPatch, cause: DeathCause
) -> None:
    real = sandbox.run

    def run(task: str, argument: dict[str, Any], **options: Any) -> sandbox.Outcome:
        if "modelscan" in argument["only"] or not argument["only"]:
            return Died(cause, "it stopped")
        return real(task, argument, **options)

    monkeypatch.setattr(sandbox, "run", run)

    scan = scan_one(HostileFile("sound", "notes.md", b"# Notes"), is_pickle=False)

    assert scan.outcome is ScanOutcome.UNREADABLE
    outcomes = {row.scanner: (row.outcome, row.problem) for row in scan.verdicts}
    assert outcomes["modelscan"] == (ScanOutcome.UNREADABLE, "it stopped")
    assert outcomes["rules"] == (ScanOutcome.CLEAN, "")
