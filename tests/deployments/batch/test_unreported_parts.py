"""Answers whose worker died before it reported them are counted without a further message, and once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.batch.domain import places, queue_worker, reports
from deployments.batch.domain.sources.redis.stream import RedisStream
from deployments.batch.domain.sources.sqs.queue import SqsSource
from deployments.batch.gateways.batch_store import BatchStore
from deployments.models import BatchJob
from portal.core import clock
from tests.deployments.batch.queue_bench import Drain, QueueBench, run_until_killed
from tests.deployments.batch.sqs_bench import SqsBench


@pytest.fixture(
    params=[(RedisStream, "queue_bench"), (SqsSource, "sqs_bench")], ids=["redis", "sqs"]
)
def drain(request: pytest.FixtureRequest) -> tuple[Any, type]:
    owner, name = request.param
    return request.getfixturevalue(name), owner


def live_pod(drain: Drain, job: BatchJob) -> None:
    """Some worker of the job runs."""
    name = f"batch-{job.pk}-{job.attempt}"
    labels = {"slipway.dev/batch": name}
    pod = {"metadata": {"name": "w", "labels": labels}, "status": {"phase": "Running"}}
    drain.bench.world.cluster.objects[("Pod", "vision", "w")] = pod


def numbers(job: BatchJob) -> list[tuple[int, int]]:
    return list(job.chunks.order_by("number").values_list("number", "rows"))


def test_a_worker_that_died_after_its_last_acknowledgement_is_counted(
    drain: tuple[Any, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, owner = drain
    bench.send(1, 2, 4)
    job = bench.running()
    worker = bench.consumer()
    assert run_until_killed(worker, monkeypatch, owner, "acknowledge", "after")
    assert len(bench.answered()) == 3

    bench.bench.tick(job)

    assert (job.done_rows, numbers(job)) == (3, [(0, 3)])
    # The first one was only slow: its report comes, and more work after it.
    worker.counts["answered"] = 3
    worker.report(0, 3)
    bench.send(5)
    bench.bench.tick(job, seconds=300)
    bench.work()
    bench.bench.tick(job)
    assert (job.done_rows, numbers(job)) == (4, [(0, 3), (1, 1)])


def test_while_a_worker_lives_a_part_without_report_counts_after_a_minute(
    queue_bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_bench.send(1)
    job = queue_bench.running()
    live_pod(queue_bench, job)
    assert run_until_killed(
        queue_bench.consumer(), monkeypatch, RedisStream, "acknowledge", "after"
    )

    part = BatchStore().find_part(places.part_key(job.output, 0))
    assert part is not None
    # The store has a clock of its own.
    age = (clock.now() - part.written_at).total_seconds()
    queue_bench.bench.tick(job, seconds=59 - age)
    assert job.done_rows == 0, "it may be about to report"
    queue_bench.bench.tick(job, seconds=2)
    assert job.done_rows == 1


def test_a_message_of_a_counted_part_that_comes_again_is_not_answered_again(
    drain: tuple[Any, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the part and the acknowledgement, and found by the portal before the message comes again."""
    bench, owner = drain
    ids = bench.send(1)
    job = bench.running()
    assert run_until_killed(bench.consumer(), monkeypatch, owner, "acknowledge", "before")
    # The second pass signs a list that no longer names it as the next part.
    bench.bench.tick(job)
    bench.bench.tick(job, seconds=300)
    assert job.done_rows == 1
    assert reports.read_drained(job.drained).adopted == (0,)

    if isinstance(bench, SqsBench):
        bench.make_visible()
    triton = bench.work()
    bench.bench.tick(job)

    assert triton.asked == []
    assert bench.answered() == {ids[0]: [2]}
    assert (job.done_rows, numbers(job)) == (1, [(0, 1)])
    assert reports.read_drained(job.drained).adopted == ()


def test_parts_behind_a_gap_count(queue_bench: QueueBench) -> None:
    """A worker that died took the address of part 1 along; the next one wrote part 2 and died too."""
    bench = queue_bench.bench
    job = queue_bench.running()
    output = "batch/vision/out/scores/"
    line = json.dumps({"message": "1-1", "outputs": [2]}).encode() + b"\n"
    bench.put(line, f"{output}part-00000.jsonl")
    bench.put(line * 2, f"{output}part-00002.jsonl")
    bench.tick(job)
    assert (job.done_rows, numbers(job)) == (1, [(0, 1)])

    worker = queue_bench.consumer()
    worker.counts["answered"] = 5
    worker.report(3, 5)
    bench.tick(job)

    assert (job.done_rows, numbers(job)) == (8, [(0, 1), (2, 2), (3, 5)])


def test_what_died_last_is_counted_at_the_end(
    queue_bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_bench.send(*range(60))
    job = queue_bench.running(hours=1, requests=1)
    monkeypatch.setattr(queue_worker, "PART_ROWS", 1)
    for _ in range(3):
        assert run_until_killed(
            queue_bench.consumer(), monkeypatch, RedisStream, "acknowledge", "after"
        )
    queue_bench.bench.tick(job, seconds=2 * 3600)
    assert job.state == "stopping"
    queue_bench.bench.tick(job)

    assert (job.state, job.done_rows) == ("succeeded", len(queue_bench.answered()))
