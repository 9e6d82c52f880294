"""A version waits for its load test on a cluster: one Job, whatever dies, and one result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from deployments.load_tests.services import places
from deployments.load_tests.services.jobs import Jobs
from deployments.models import LoadTestRun, ModelVersion
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.examined_version import ExaminedVersion
from deployments.registry.services import upload_endings, verification
from deployments.registry.services.examination import cluster_load_test
from deployments.states import VersionState
from fleet.kube.domain.errors import ClusterError, NotAllowed, Unreachable
from fleet.kube.services import clients
from fleet.models import Cluster, Workload
from portal.audit.models import AuditEvent
from portal.core import clock
from tests.capabilities import offering
from tests.deployments import onnx_models
from tests.deployments.load_tests.test_observation import ANSWERED, ended
from tests.deployments.recording_cluster import RecordingCluster
from tests.deployments.uploading import People, Upload

OUTPUT = {"name": "y", "datatype": "FP32", "shape": [1, 2]}


class Died(BaseException):
    """The worker."""


@dataclass
class Bench:
    cluster: RecordingCluster
    version: ModelVersion
    move: Callable[[float], None]

    @property
    def job(self) -> Any:
        ((_, body),) = [item for item in self.cluster.objects.items() if item[0][0] == "Job"]
        return body

    def tick(self, seconds: float = 20) -> ModelVersion:
        self.move(seconds)
        verification.advance(self.version.pk)
        self.version.refresh_from_db()
        return self.version

    def end(self, text: str, **status: Any) -> None:
        labels = self.job["spec"]["template"]["metadata"]["labels"]
        self.cluster.put_pod("vision", "pod", labels, ended(text, **status)["status"])

    @property
    def made(self) -> int:
        return sum(call[:2] == ("apply", "Job") for call in self.cluster.calls)

    @property
    def step(self) -> Any:
        return next(check for check in self.version.checks if check["name"] == "Load test")


@pytest.fixture
def bench(
    people: People,
    verified: Upload,
    moving_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Bench:
    cluster = RecordingCluster()
    monkeypatch.setattr(clients, "factory", lambda connection: cluster)
    clients.forget()
    Cluster.objects.create(
        name="gpu-1",
        kind="kubeconfig",
        kubeconfig_path="/nowhere",
        gateway_url="http://gateway.example",
        capabilities=offering("triton"),
        created_at=clock.now(),
    )
    places.choose(
        actor=people.lead,
        team=people.team,
        cluster_name="gpu-1",
        pod={"gpu_resource": "nvidia.com/gpu", "instance_type": "g5.xlarge", "minutes": 10},
    )
    version = verified(onnx_models.linear())
    return Bench(cluster, version, moving_clock.move)


def result_of(version: ModelVersion) -> str:
    output = version.signature["outputs"][0]
    shape = [1 if dim == -1 else dim for dim in output["dims"]]
    return json.dumps({**ANSWERED, "outputs": [{**OUTPUT, "name": output["name"], "shape": shape}]})


def test_the_version_waits_and_the_job_asks_for_what_the_team_chose(bench: Bench) -> None:
    version = bench.version
    assert (version.state, bench.step["detail"]) == (
        VersionState.VERIFYING,
        "runs on cluster gpu-1",
    )
    assert version.laid_out == []

    bench.tick()

    spec = bench.job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 600)
    assert spec["ttlSecondsAfterFinished"] == 600
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "g5.xlarge"}
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    download, check = pod["initContainers"]
    run = LoadTestRun.objects.get()
    examined = ExaminedVersion.from_json(run.columns)
    assert download["args"][0].endswith(f"/{examined.repository_prefix}")
    assert examined.laid_out[0]["sha256"] in str(check["env"])
    workload = Workload.objects.get()
    assert (workload.name, workload.team.slug) == (run.name, "vision")
    assert "secret" not in json.dumps(bench.job).lower().replace("secretref", "")


def test_its_result_makes_the_version_ready_and_nothing_is_left(bench: Bench) -> None:
    bench.tick()
    assert bench.tick().state == VersionState.VERIFYING
    bench.end(result_of(_examined()))

    version = bench.tick()

    result = results.read_load_test(version.signature)
    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert result is not None
    assert (result.cluster, result.gpu_memory_mib) == ("gpu-1", 450)
    assert bench.step == {"name": "Load test", "ok": True, "detail": result.describe()}
    assert "450 MiB of GPU memory on cluster gpu-1" in result.describe()
    assert bench.cluster.names("Job") == bench.cluster.names("Pod") == []
    assert not LoadTestRun.objects.exists()
    assert Workload.objects.get().retired_at is not None
    assert bench.made == 1


def test_what_triton_does_not_load_fails_with_its_message(bench: Bench) -> None:
    bench.tick()
    bench.end(json.dumps({"outcome": "not_loaded", "detail": "failed to load 'detector': no op"}))

    version = bench.tick()

    message = "Triton does not load the model: failed to load 'detector': no op."
    assert (version.state, version.state_reason) == (VersionState.FAILED, message)
    assert bench.step == {"name": "Load test", "ok": False, "detail": message}
    assert bench.cluster.names("Job") == []
    assert not LoadTestRun.objects.exists()


def test_an_evicted_pod_is_no_verdict(bench: Bench) -> None:
    bench.tick()
    bench.end("", code=137, phase="Failed", reason="Evicted", message="low on memory")

    version = bench.tick()

    assert version.state == VersionState.READY
    assert results.read_load_test(version.signature) is None
    assert bench.step["ok"] is None
    assert bench.step["detail"] == (
        "not tried: the cluster ended its pod (Evicted: low on memory); try again"
    )


def test_a_refused_job_is_no_verdict(bench: Bench) -> None:
    bench.cluster.refuse["Job"] = NotAllowed('jobs.batch is forbidden: User "portal"')

    version = bench.tick()

    assert version.state == VersionState.READY
    assert bench.step["detail"] == (
        'not tried: the cluster refuses it: jobs.batch is forbidden: User "portal"'
    )


def test_a_cluster_that_stays_away_ends_the_wait_without_a_verdict(bench: Bench) -> None:
    bench.cluster.fail_with = Unreachable("no route to host")
    assert bench.tick().state == VersionState.VERIFYING
    assert bench.step["detail"] == (
        "runs on cluster gpu-1: the cluster does not answer: no route to host"
    )

    version = bench.tick(16 * 60)

    assert version.state == VersionState.READY
    assert bench.step["detail"].startswith("not tried: the cluster could not be reached in time")
    assert bench.made == 0


@pytest.mark.parametrize("point", ["applied", "read", "stored", "removed"])
def test_a_worker_killed_anywhere_runs_it_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The next worker finds the Job by its name, and keeps the one result."""
    if point == "applied":
        bench.cluster.after_apply = []
        original = bench.cluster.apply

        def apply(manifest: Any, **options: Any) -> Any:
            made = original(manifest, **options)
            if manifest["kind"] == "Job":
                raise Died
            return made

        with monkeypatch.context() as patched:
            patched.setattr(bench.cluster, "apply", apply)
            with pytest.raises(Died):
                bench.tick()
    else:
        bench.tick()
    bench.end(result_of(_examined()))
    died: dict[str, tuple[Any, str]] = {
        "read": (Jobs, "advance"),
        "stored": (Jobs, "remove"),
        "removed": (verification, "_conclude"),
    }
    if point in died:
        place, name = died[point]
        original_call = getattr(place, name)

        def die(*args: Any, **options: Any) -> Any:
            if point != "stored":
                original_call(*args, **options)
            raise Died

        with monkeypatch.context() as patched:
            patched.setattr(place, name, die)
            with pytest.raises(Died):
                bench.tick()
        bench.version.refresh_from_db()
        assert bench.version.state == VersionState.VERIFYING

    # Past the dead worker's lease.
    version = bench.tick(200)

    assert version.state == VersionState.READY
    assert results.read_load_test(version.signature) is not None
    assert bench.made == 1
    assert bench.cluster.names("Job") == []
    assert AuditEvent.objects.filter(action="version.ready").count() == 1


def test_a_job_that_somebody_removed_is_not_made_again(bench: Bench) -> None:
    bench.tick()
    del bench.cluster.objects["Job", "vision", LoadTestRun.objects.get().name]

    version = bench.tick(11 * 60)

    assert bench.made == 1
    assert version.state == VersionState.READY
    assert bench.step["detail"].startswith("not tried: its Job was removed before it ended")


def test_a_stopped_verification_removes_its_job(bench: Bench, people: People) -> None:
    bench.tick()
    upload_endings.stop_verification(actor=people.member, version_id=bench.version.pk)

    version = bench.tick()

    assert version.state == VersionState.FAILED
    assert bench.cluster.names("Job") == []
    assert not LoadTestRun.objects.exists()


def test_a_run_of_an_earlier_verification_does_not_count(bench: Bench) -> None:
    bench.tick()
    until = clock.now() + timedelta(hours=2)
    ModelVersion.objects.filter(pk=bench.version.pk).update(deadline_at=until)
    bench.end(result_of(_examined()))

    bench.tick()

    run = LoadTestRun.objects.get()
    assert (run.until, run.applied_at, run.result) == (until, None, None)
    assert bench.cluster.names("Job") == []


def test_a_job_that_cannot_be_removed_is_tried_until_the_deadline(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.tick()
    bench.end(result_of(_examined()))

    def refuse(*args: Any, **options: Any) -> None:
        raise ClusterError("busy")

    with monkeypatch.context() as patched:
        patched.setattr(bench.cluster, "delete", refuse)
        assert bench.tick().state == VersionState.VERIFYING
        assert bench.tick().state == VersionState.VERIFYING

        version = bench.tick(16 * 60)

    # The cluster removes it by its own limit.
    assert version.state == VersionState.READY
    assert bench.made == 1


def test_without_a_choice_nothing_waits(bench: Bench, people: People, verified: Upload) -> None:
    places.choose(actor=people.lead, team=people.team, cluster_name="", pod={})

    version = verified(onnx_models.linear(), model="other")

    assert version.state == VersionState.READY
    assert cluster_load_test.place_of(version) == ""


def _examined() -> ModelVersion:
    run = LoadTestRun.objects.get()
    return ModelVersion(signature=ExaminedVersion.from_json(run.columns).signature)
