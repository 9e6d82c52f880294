"""A job over files that names a LocalQueue of Kueue: suspended, with its position, and without a deadline meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deployments.models import BatchJob
from deployments.serving.domain.queue_state import QueueState
from fleet.kube.domain.errors import NotAllowed
from fleet.models import Cluster, Workload
from portal.core.errors import Invalid
from tests.deployments import queues
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.queue_bench import QueueBench


@pytest.fixture
def kueue(bench: Bench) -> Bench:
    queues.install(bench.world)
    return bench


def put_workload(bench: Bench, job: dict[str, Any], position: int | None = 1) -> None:
    """What Kueue writes for a Job: one Workload for all of its pods."""
    name = f"job-{job['metadata']['name']}-ab12c"
    workload = queues.workload_of("x", name)
    job["metadata"]["uid"] = f"uid-of-{job['metadata']['name']}"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "uid": job["metadata"]["uid"]}
    workload["metadata"]["ownerReferences"] = [owner]
    objects = bench.world.cluster.objects
    objects["Workload", queues.NAMESPACE, name] = workload
    if position is not None:
        objects["PendingWorkload", queues.NAMESPACE, name] = {
            "metadata": {"name": name, "namespace": queues.NAMESPACE},
            "positionInLocalQueue": position,
        }


def test_it_waits_suspended_shows_its_position_and_its_deadline_does_not_pass(kueue: Bench) -> None:
    kueue.put_rows(100)
    job = kueue.running(queue=queues.QUEUE, workers=2, hours=1)
    (made,) = kueue.made("Job")
    assert made["spec"]["suspend"] is True
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queues.QUEUE
    assert "kueue.x-k8s.io/queue-name" not in made["spec"]["template"]["metadata"]["labels"]

    kueue.tick(job)
    assert job.detail == (
        "1 pod waits in queue serving, position not known: Kueue has made no Workload for it yet"
    )
    put_workload(kueue, made)
    kueue.tick(job)
    assert job.detail == f"1 pod waits in queue serving, position 2: {queues.FULL}"
    assert QueueState.from_json(job.queue_state) == QueueState(
        "serving", "pending", waiting=1, position=2, why=queues.FULL
    )

    for _ in range(30):
        kueue.tick(job, seconds=600)
    assert job.state == "running", "five hours in the queue of a job of one hour"
    left = job.deadline_at - kueue.world.clock.at  # type: ignore[operator]
    assert timedelta(minutes=69) <= left <= timedelta(minutes=70)
    assert Workload.objects.get().ends_at == job.deadline_at

    made["spec"]["suspend"] = False
    kueue.tick(job)
    assert "queue" not in job.detail
    assert job.queue_state is None
    kueue.work()
    kueue.tick(job)
    kueue.tick(job)
    assert job.state == "succeeded"


def test_a_portal_that_was_away_while_it_waited_does_not_fail_it(kueue: Bench) -> None:
    kueue.put_rows(100)
    job = kueue.running(queue=queues.QUEUE, hours=1)
    kueue.tick(job, seconds=86_400)
    assert job.state == "running"


def test_an_eviction_is_shown(kueue: Bench) -> None:
    kueue.put_rows(100)
    job = kueue.running(queue=queues.QUEUE)
    (made,) = kueue.made("Job")
    put_workload(kueue, made, position=None)
    (workload,) = kueue.made("Workload")
    workload["status"]["conditions"].append(
        queues.condition("Evicted", "True", "Preempted", "preempted by a workload of nlp")
    )
    kueue.tick(job)
    assert job.detail.startswith("evicted (preempted by a workload of nlp); 1 pod waits in queue")


def test_a_cluster_without_kueue_or_the_queue_refuses_it(bench: Bench) -> None:
    row = Cluster.objects.get(pk=bench.world.cluster_id)
    row.capabilities["features"]["kueue"] = {"is_there": False, "version": "", "why": ""}
    row.save()
    with pytest.raises(Invalid) as refusal:
        bench.request(queue=queues.QUEUE)
    assert "Kueue is not installed" in refusal.value.fields["queue"]

    queues.install(bench.world)
    with pytest.raises(Invalid) as refusal:
        bench.request(queue="missing")
    assert "LocalQueue missing of vision does not exist" in refusal.value.fields["queue"]
    assert not BatchJob.objects.exists()


def start_worker(bench: Bench, name: str) -> dict[str, Any]:
    """The Job that KEDA makes of the ScaledJob, with its labels."""
    (scaled,) = bench.made("ScaledJob")
    labels = {**scaled["metadata"]["labels"], "scaledjob.keda.sh/name": scaled["metadata"]["name"]}
    worker = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": queues.NAMESPACE, "labels": labels},
        "spec": dict(scaled["spec"]["jobTargetRef"]),
    }
    bench.world.cluster.objects["Job", queues.NAMESPACE, name] = worker
    return worker


def test_workers_that_drain_a_queue_of_messages_wait_one_by_one(queue_bench: QueueBench) -> None:
    bench = queue_bench.bench
    queues.install(bench.world)
    job = queue_bench.running(queue=queues.QUEUE, workers=3, hours=1)
    first, second = (start_worker(bench, f"batch-{job.pk}-1-{letter}") for letter in "ab")

    assert first["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queues.QUEUE
    template = first["spec"]["template"]["metadata"]
    assert "kueue.x-k8s.io/queue-name" not in template["labels"]
    assert first["spec"]["suspend"] is True
    put_workload(bench, first, position=4)
    put_workload(bench, second, position=2)
    bench.tick(job)
    assert job.detail == f"2 pods wait in queue serving, position 3: {queues.FULL}"
    assert QueueState.from_json(job.queue_state) == QueueState(
        "serving", "pending", waiting=2, position=3, why=queues.FULL
    )

    second["spec"]["suspend"] = False
    bench.tick(job)
    assert job.detail == f"1 pod waits in queue serving, position 5: {queues.FULL}"
    first["spec"]["suspend"] = False
    bench.tick(job)
    assert (job.detail, job.queue_state) == ("", None)

    bench.tick(job, seconds=2 * 3600)
    assert job.state != "running", "the time in which it drains is not prolonged"


def test_a_queue_that_does_not_exist_refuses_one_that_drains(queue_bench: QueueBench) -> None:
    queues.install(queue_bench.bench.world)
    with pytest.raises(Invalid) as refusal:
        queue_bench.bench.request(input=queue_bench.address, queue="missing")
    assert "LocalQueue missing of vision does not exist" in refusal.value.fields["queue"]
    assert not BatchJob.objects.exists()
    assert queue_bench.bench.made("ScaledJob") == []


def test_a_portal_that_may_not_list_jobs_goes_on_draining(
    queue_bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = queue_bench.bench
    queues.install(bench.world)
    job = queue_bench.running(queue=queues.QUEUE)
    listed = bench.world.cluster.list_all

    def refusing(kind: Any, **options: Any) -> Any:
        if kind.kind == "Job":
            raise NotAllowed("jobs.batch is forbidden")
        return listed(kind, **options)

    monkeypatch.setattr(bench.world.cluster, "list_all", refusing)
    queue_bench.send(1)
    queue_bench.work()
    bench.tick(job)
    assert job.detail == "whether workers wait for Kueue is not known: jobs.batch is forbidden"
    assert (job.state, job.done_rows) == ("running", 1)


def test_without_a_queue_of_kueue_its_workers_are_not_suspended(queue_bench: QueueBench) -> None:
    queue_bench.running()
    (scaled,) = queue_bench.bench.made("ScaledJob")
    assert "suspend" not in scaled["spec"]["jobTargetRef"]
    assert "kueue.x-k8s.io/queue-name" not in scaled["metadata"]["labels"]
