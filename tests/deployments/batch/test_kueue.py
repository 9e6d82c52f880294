"""A job over files that names a LocalQueue of Kueue: suspended, with its position, and without a deadline meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deployments.models import BatchJob
from fleet.models import Cluster, Workload
from portal.core.errors import Invalid
from tests.deployments import queues
from tests.deployments.batch.bench import Bench


@pytest.fixture
def kueue(bench: Bench) -> Bench:
    queues.install(bench.world)
    return bench


def put_workload(bench: Bench, job: dict[str, Any], position: int | None = 1) -> None:
    """What Kueue writes for a Job: one Workload for all of its pods."""
    name = f"job-{job['metadata']['name']}-ab12c"
    workload = queues.workload_of("x", name)
    job["metadata"]["uid"] = "uid-of-job"
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

    for _ in range(30):
        kueue.tick(job, seconds=600)
    assert job.state == "running", "five hours in the queue of a job of one hour"
    left = job.deadline_at - kueue.world.clock.at  # type: ignore[operator]
    assert timedelta(minutes=69) <= left <= timedelta(minutes=70)
    assert Workload.objects.get().ends_at == job.deadline_at

    made["spec"]["suspend"] = False
    kueue.tick(job)
    assert "queue" not in job.detail
    kueue.work()
    kueue.tick(job)
    kueue.tick(job)
    assert job.state == "succeeded"


def test_a_portal_that_was_away_while_it_waited_does_not_fail_it(kueue: Bench) -> None:
    kueue.put_rows(100)
    job = kueue.running(queue=queues.QUEUE, hours=1)
    kueue.tick(job, seconds=86_400)
    assert job.state == "running"


def test_an_eviction_is_told(kueue: Bench) -> None:
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
