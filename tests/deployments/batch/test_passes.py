"""Passes over a batch job: canceled, late, refused, and with workers of the portal that die."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.batch.domain import worker_store
from deployments.batch.gateways import batch_store
from deployments.batch.services import (
    checkpoints,
    cluster_job,
    draining,
    requests,
)
from deployments.models import BatchChunk
from fleet.kube.domain.errors import ObjectInvalid, Refused, Unreachable
from portal.core.errors import Conflict
from tests.deployments.batch.bench import Bench, Server


class Died(BaseException):
    """The worker of the portal."""


def test_it_is_canceled_and_what_is_done_stays(bench: Bench) -> None:
    bench.put_rows(1000)
    job = bench.running()
    with pytest.raises(worker_store.WorkerEnded):
        bench.work(Server(dies_at=500))

    requests.cancel(actor=bench.world.member, job_id=job.pk)
    # Twice, from another tab: its Job is removed all the same.
    with pytest.raises(Conflict, match="is stopping"):
        requests.cancel(actor=bench.world.member, job_id=job.pk)
    bench.tick(job)

    assert (job.state, job.state_reason) == ("canceled", "member canceled it.")
    assert bench.made("Job") == []
    numbers = [row["row"] for row in bench.rows()]
    assert numbers == list(range(1, len(numbers) + 1))
    with pytest.raises(Conflict):
        requests.cancel(actor=bench.world.member, job_id=job.pk)


def test_a_job_canceled_while_its_input_is_read_starts_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put_rows(100)
    job = bench.request()
    real = batch_store.BatchStore.blocks

    def canceled_meanwhile(store: Any, file: Any) -> Any:
        requests.cancel(actor=bench.world.member, job_id=job.pk)
        return real(store, file)

    monkeypatch.setattr(batch_store.BatchStore, "blocks", canceled_meanwhile)
    bench.tick(job)
    bench.tick(job)
    assert (job.state, BatchChunk.objects.count(), bench.made("Job")) == ("canceled", 0, [])


def test_the_deadline_ends_it_and_resuming_goes_on_from_the_checkpoint(bench: Bench) -> None:
    bench.put_rows(1000)
    job = bench.running(hours=1)
    with pytest.raises(worker_store.WorkerEnded):
        bench.work(Server(dies_at=500))
    bench.tick(job)
    done = job.done_rows
    bench.tick(job, seconds=2 * 3600)
    bench.tick(job)
    assert (job.state, job.done_rows) == ("failed", done)
    assert job.state_reason == "It was not done by its deadline. Resume the job to continue."

    requests.resume(actor=bench.world.member, job_id=job.pk)
    bench.tick(job)
    assert bench.made("Job")[0]["metadata"]["name"] == f"batch-{job.pk}-2"
    again = bench.work()
    bench.tick(job)
    bench.tick(job)

    assert (job.state, job.attempt, again.asked) == ("succeeded", 2, 1000 - done)
    assert [row["row"] for row in bench.rows()] == list(range(1, 1001))


def test_a_job_that_failed_says_why(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.running()
    (made,) = bench.made("Job")
    labels = made["spec"]["template"]["metadata"]["labels"]
    message = json.dumps({"code": 1, "detail": "Triton does not load the model: no\x00 memory"})
    ended = {
        "terminated": {"exitCode": 1, "message": message, "finishedAt": "2026-01-01T00:00:00Z"}
    }
    status = {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": ended}]}
    bench.world.cluster.put_pod("vision", "p", labels, status)
    bench.tick(job)
    assert job.detail == "last failure: Triton does not load the model: no memory"
    bench.end_job("Failed", "FailedIndexes")
    bench.tick(job)
    bench.tick(job)
    assert job.state == "failed"
    assert job.state_reason == (
        "A worker failed too often. Triton does not load the model: no memory Resume the job to continue."
    )


def test_a_job_that_somebody_deletes_is_made_again(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.running()
    bench.world.cluster.objects.pop(("Job", "vision", f"batch-{job.pk}-1"))
    bench.tick(job)
    assert len(bench.made("Job")) == 1


@pytest.mark.parametrize("error", [Refused("quota exceeded"), ObjectInvalid("no")])
def test_what_the_cluster_refuses_fails_it_with_its_message(bench: Bench, error: Exception) -> None:
    bench.put_rows(1)
    job = bench.request()
    bench.world.cluster.refuse["Job"] = error  # type: ignore[assignment]
    bench.tick(job)
    bench.tick(job)
    bench.tick(job)
    assert (job.state, "The cluster rejected the job: " in job.state_reason) == ("failed", True)
    assert bench.made("Secret") == []


def test_a_cluster_that_is_away_is_tried_again(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.request()
    bench.tick(job)
    bench.world.cluster.fail_with = Unreachable("no route")
    bench.tick(job)
    assert (job.state, job.detail) == ("running", "no route")
    bench.world.cluster.fail_with = None
    bench.tick(job, seconds=120)
    assert len(bench.made("Job")) == 1


CRASHES = [
    (cluster_job, "apply_links"),
    (cluster_job, "ensure"),
    (checkpoints, "collect"),
    (cluster_job, "remove"),
    (draining, "save"),
]


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("module", "name"), CRASHES, ids=[name for _, name in CRASHES])
def test_a_worker_may_die_around_each_effect(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, is_after: bool
) -> None:
    bench.put_rows(300)
    job = bench.request()
    real, deaths = getattr(module, name), [True]

    def dying(*args: Any, **named: Any) -> Any:
        result = real(*args, **named) if is_after or not deaths else None
        if deaths:
            deaths.pop()
            raise Died
        return result

    monkeypatch.setattr(module, name, dying)
    for _ in range(12):
        try:
            # The lease of the dead one has to end.
            bench.tick(job, seconds=130)
        except Died:
            job.refresh_from_db()
        if bench.made("Secret") and bench.made("Job"):
            bench.work()

    assert not deaths
    assert (job.state, job.done_rows) == ("succeeded", 300)
    assert [row["row"] for row in bench.rows()] == list(range(1, 301))
    assert (bench.made("Job"), bench.keys("batch-work/")) == ([], [])
    assert len([c for c in bench.world.cluster.calls if c[:2] == ("apply", "Job")]) == 1
