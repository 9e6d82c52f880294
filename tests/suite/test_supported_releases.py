"""docs/releases.md names the releases that the cluster's tests are built from."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import yaml

from tests.cluster import build
from tests.cluster.keda.artifact import KEDA
from tests.cluster.kueue.artifact import KUEUE

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "releases.md").read_text()
_BUILT: dict[str, list[build.Artifact]] = {
    "Kubernetes": list(build.CONTROL_PLANES.values()),
    "KServe": list(build.KSERVE_RELEASES),
    "KEDA": [KEDA],
    "Kueue": [KUEUE],
    "Helm": [build.HELM],
}


def _rows() -> list[list[str]]:
    lines = [line for line in DOCUMENT.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_release_that_is_run_has_its_row_and_no_other() -> None:
    documented = {(product, version) for product, _, version, *_ in _rows()}

    assert documented == {
        (product, artifact.release.removeprefix("v"))
        for product, artifacts in _BUILT.items()
        for artifact in artifacts
    }


def test_each_row_has_a_day() -> None:
    for *_, day in _rows():
        assert date.fromisoformat(day).year >= 2026


def test_each_release_of_kubernetes_is_named_as_it_is_chosen() -> None:
    for name, artifact in build.CONTROL_PLANES.items():
        assert artifact.release.removeprefix("v").startswith(f"{name}.")
        assert artifact.release.removeprefix("v") in DOCUMENT


def test_the_oldest_kubernetes_is_the_charts() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    (oldest,) = re.findall(r">=(\d+\.\d+)\.0-0", chart["kubeVersion"])

    assert f"| Kubernetes | {oldest} or newer |" in DOCUMENT
