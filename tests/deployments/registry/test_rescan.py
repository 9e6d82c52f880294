"""When a scanner changes every version is scanned again; a worse verdict quarantines what was ready."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from deployments import tasks
from deployments.models import ModelVersion
from deployments.registry.domain.scanning.verdicts import (
    FileScan,
    ScannerVerdict,
    ScanOutcome,
    ScanReport,
)
from deployments.registry.gateways import scanners
from deployments.registry.gateways.scanners import task
from deployments.registry.services import verification, versions
from deployments.registry.services.scans import rescan, scanning
from deployments.states import VersionState
from portal.notifications.models import Notice
from tests.deployments import onnx_models
from tests.deployments.registry.test_triton_code import PYTHON
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db


def test_versions_of_former_engines_are_scanned_again(verified: Upload) -> None:
    version = verified(onnx_models.linear())
    current = version.scan_engines
    assert rescan.sweep() == 0
    ModelVersion.objects.update(scan_engines="rules 0")

    tasks.sweep_scans()

    version.refresh_from_db()
    assert (version.state, version.scan_engines) == (VersionState.READY, current)
    assert (version.lease_token, version.next_check_at) == ("", None)
    assert rescan.pending().count() == 0


def test_a_worse_verdict_quarantines_and_notifies(
    verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = verified(onnx_models.linear())
    engines = {**scanners.engines(), scanners.MODELSCAN: "99"}
    monkeypatch.setattr(scanners, "engines", lambda: engines)
    worse = scanning.report_of([scanning.unreadable("detector.onnx", "a new rule")])
    monkeypatch.setattr(scanning, "scan", lambda _: worse)

    assert rescan.sweep() == 1

    version.refresh_from_db()
    assert version.state == VersionState.QUARANTINED
    assert "A new scan" in version.state_reason
    assert "a new rule" in version.state_reason
    assert Notice.objects.get().subject == f"{version.label} is quarantined"
    assert rescan.sweep() == 0


def test_uploads_are_verified_first(verified: Upload, upload: Upload) -> None:
    version = verified(onnx_models.linear())
    ModelVersion.objects.update(scan_engines="rules 0")
    waiting = upload(onnx_models.linear(scale=2))

    assert rescan.sweep() == 0

    verification.advance(waiting.pk)
    assert rescan.sweep() == 1
    version.refresh_from_db()
    assert version.state == VersionState.READY


def scanned(*verdicts: ScannerVerdict, path: str = "model.py") -> ScanReport:
    return scanning.report_of([FileScan(path, verdicts)])


def runs(*findings: str, scanner: str = scanners.MODELSCAN) -> ScannerVerdict:
    return ScannerVerdict(scanner, "98", ScanOutcome.CODE, findings)


def cannot_read(scanner: str = scanners.MODELSCAN) -> ScannerVerdict:
    return ScannerVerdict(scanner, "98", ScanOutcome.UNREADABLE, problem="it is damaged")


@pytest.fixture
def scan_says(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScanReport], None]:
    """The verdict of the next scan, by a scanner that changed once more."""
    number = itertools.count(98)

    def say(report: ScanReport) -> None:
        engines = {**scanners.engines(), scanners.MODELSCAN: str(next(number))}
        monkeypatch.setattr(scanners, "engines", lambda: engines)
        monkeypatch.setattr(scanning, "scan", lambda _: replace(report, engines=engines))

    return say


@pytest.fixture
def released(
    people: People, verified: Upload, scan_says: Callable[[ScanReport], None]
) -> ModelVersion:
    """Code that an admin released with two findings."""
    scan_says(scanned(runs("os.system", "socket.socket")))
    version = verified(PYTHON, model="rows")
    assert version.state == VersionState.QUARANTINED
    versions.release(actor=people.admin, version_id=version.pk, reason="Our own code.", days=30)
    verification.advance(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.READY
    return version


@pytest.mark.parametrize(
    "verdicts",
    [
        pytest.param([runs("os.system", "socket.socket")], id="the same"),
        pytest.param([runs("socket.socket", "os.system")], id="the same in another order"),
        pytest.param([runs("os.system")], id="less"),
        pytest.param([], id="clean"),
        pytest.param(
            [runs("os.system"), runs("os.system", scanner=scanners.PICKLESCAN)],
            id="the same by a second scanner",
        ),
    ],
)
def test_a_verdict_that_is_no_worse_keeps_the_release(
    released: ModelVersion,
    scan_says: Callable[[ScanReport], None],
    verdicts: list[ScannerVerdict],
) -> None:
    scan_says(scanned(*verdicts))

    assert rescan.sweep() == 1

    version = ModelVersion.objects.get()
    assert (version.state, version.release) == (VersionState.READY, released.release)
    assert version.deadline_at == released.deadline_at
    assert version.scan_engines != released.scan_engines
    assert Notice.objects.count() == 0


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        pytest.param(scanned(runs("os.system", "os.fork")), "New: os.fork. ", id="another finding"),
        pytest.param(
            scanned(runs("os.system"), path="b.py"), "New: os.system. ", id="another file"
        ),
        pytest.param(scanned(cannot_read()), "It could not be scanned: ", id="unreadable"),
        pytest.param(
            scanned(runs("os.system"), cannot_read(scanners.PICKLESCAN)),
            "Loading it would run os.system. The release",
            id="a second scanner fails",
        ),
    ],
)
def test_a_worse_verdict_needs_a_new_release(
    people: People,
    released: ModelVersion,
    scan_says: Callable[[ScanReport], None],
    worse: ScanReport,
    reason: str,
) -> None:
    scan_says(worse)

    assert rescan.sweep() == 1

    version = ModelVersion.objects.get()
    assert (version.state, version.release) == (VersionState.QUARANTINED, {})
    assert reason in version.state_reason
    assert "The release by admin covered the findings of the scan before." in version.state_reason

    versions.release(actor=people.admin, version_id=version.pk, reason="Seen too.", days=30)
    scan_says(worse)
    assert rescan.sweep() == 1
    version.refresh_from_db()
    assert (version.state, version.release["reason"]) == (VersionState.READY, "Seen too.")


def test_a_release_of_more_findings_than_are_listed_covers_all_of_them(
    released: ModelVersion, scan_says: Callable[[ScanReport], None], people: People
) -> None:
    scan_says(scanned(*(runs(f"os.f{number}") for number in range(1500))))
    rescan.sweep()
    versions.release(actor=people.admin, version_id=released.pk, reason="All of it.", days=30)

    scan_says(scanned(*(runs(f"os.f{number}") for number in range(1500))))
    rescan.sweep()
    assert ModelVersion.objects.get().state == VersionState.READY

    scan_says(scanned(*(runs(f"os.f{number}") for number in range(1, 1501))))
    rescan.sweep()
    assert ModelVersion.objects.get().state == VersionState.QUARANTINED


def test_findings_that_are_not_listed_change_the_last_line() -> None:
    names = tuple(f"os.f{number}" for number in range(40))

    listed, other = task._shortened(names), task._shortened((*names[:-1], "os.fork"))

    assert task._shortened(names[:20]) == list(names[:20])
    assert (listed[:19], len(listed)) == (list(names[:19]), 20)
    assert listed[19].startswith("21 more (")
    assert listed[19] != other[19]
