"""A version of a team that chose a cluster is loaded there, by a Job with a real Triton, before it is ready."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployments.load_tests.services import places
from deployments.models import LoadTestRun, ModelVersion
from deployments.registry.domain.load_tests import results
from deployments.registry.services import verification, versions
from deployments.states import VersionState
from fleet.kube.services import clients, objects
from fleet.models import Cluster
from portal.core import clock
from tests.capabilities import offering
from tests.contract.test_serving import running
from tests.deployments.registry.test_triton_code import MODEL, PYTHON
from tests.deployments.uploading import People, Upload, people, upload, verified
from tests.fixtures import triton_repositories as repositories
from tests.installations import use_same_installation
from tests.waiting import PATIENCE_SECONDS, pause

__all__ = ["people", "running", "upload", "verified"]
pytestmark = [
    pytest.mark.skipif(
        "SLIPWAY_TEST_KUBECONFIG" in os.environ, reason="needs the local cluster's own Triton"
    ),
]


@pytest.fixture
def cluster(people: People, running: tuple[Path, int]) -> Iterator[Cluster]:
    kubeconfig, _ = running
    clients.forget()
    use_same_installation()
    cluster = Cluster.objects.create(
        name="demo",
        kind="local",
        kubeconfig_path=str(kubeconfig),
        gateway_url="http://127.0.0.1:1",
        capabilities=offering("triton"),
        created_at=clock.now(),
    )
    yield cluster
    clients.forget()


def _choose(people: People, **pod: str) -> None:
    pod = {"cpu": "1", "memory": "2Gi", **pod}
    places.choose(actor=people.lead, team=people.team, cluster_name="demo", pod=pod)


def _ended(version: ModelVersion) -> ModelVersion:
    """The passes of the worker, until the verification is over."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (began := time.monotonic()) < end:
        verification.advance(version.pk)
        version.refresh_from_db()
        if version.state != VersionState.VERIFYING:
            return version
        ModelVersion.objects.filter(pk=version.pk).update(next_check_at=clock.now())
        pause(began)
    raise AssertionError(version.checks)


def _step(version: ModelVersion) -> Any:
    return next(check for check in version.checks if check["name"] == "Load test")


def _left(cluster: Cluster, kind: str, api_version: str = "v1") -> list[str]:
    listed = objects.list_objects(
        cluster_id=cluster.pk, api_version=api_version, kind=kind, namespace="vision", labels={}
    )
    return [item["metadata"]["name"] for item in listed]


def _nothing_is_left(cluster: Cluster) -> bool:
    end = time.monotonic() + PATIENCE_SECONDS
    while (began := time.monotonic()) < end:
        if not _left(cluster, "Job", "batch/v1") and not _left(cluster, "Pod"):
            return True
        pause(began)
    return False


def test_it_is_loaded_on_the_cluster_that_its_team_chose(
    cluster: Cluster, verified: Upload, people: People
) -> None:
    _choose(people, gpu_resource="nvidia.com/gpu")
    version = verified(repositories.ensemble(), model="classes")
    assert version.state == VersionState.VERIFYING
    assert _step(version) == {
        "name": "Load test",
        "ok": None,
        "detail": "runs on cluster demo",
    }

    version = _ended(version)

    result = results.read_load_test(version.signature)
    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert result is not None
    assert (result.outcome, result.cluster) == (results.LoadOutcome.ANSWERED, "demo")
    assert result.outputs == ({"name": "scores", "datatype": "FP32", "shape": [1, 3]},)
    assert result.load_seconds > 0
    assert 20 < result.memory_mib < 2048
    assert result.warm_ms > 0
    assert _step(version) == {"name": "Load test", "ok": True, "detail": result.describe()}
    assert "on cluster demo" in result.describe()
    assert not LoadTestRun.objects.exists()
    assert _nothing_is_left(cluster)


def test_what_triton_cannot_load_there_is_refused_with_its_message(
    cluster: Cluster, verified: Upload, people: People
) -> None:
    code = MODEL.replace(
        b"    def execute",
        b"    def initialize(self, args):\n        raise ValueError('no scale')\n\n    def execute",
    )
    # Without a GPU, of which the configuration speaks.
    _choose(people, instance_type="g5.xlarge")
    version = verified({**PYTHON, "model.py": code}, model="rows")
    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=3)

    version = _ended(version)

    assert version.state == VersionState.QUARANTINED
    assert "Triton does not load the model: failed to load 'rows' version 1" in version.state_reason
    assert "no scale" in version.state_reason
    assert _step(version)["ok"] is False
    assert _nothing_is_left(cluster)
