"""A job that drains a queue: from the request to its answers, and what a worker that dies between two effects leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.batch.domain import reports as domain_reports
from deployments.batch.domain import worker_outbox, worker_store
from deployments.batch.domain.reports import Drained
from deployments.batch.domain.sources.redis.stream import RedisStream
from deployments.batch.services import reports, requests
from deployments.models import BatchChunk, BatchJob
from tests.deployments.batch.queue_bench import (
    DEAD,
    GROUP,
    STREAM,
    QueueBench,
    Triton,
    request_of,
    run_until_killed,
)


def drained_of(job: BatchJob) -> Drained:
    return domain_reports.read_drained(job.drained)


def lines_of(queue_bench: QueueBench, name: str = "scores") -> list[dict[str, Any]]:
    return queue_bench.bench.rows(name)


def test_it_drains_a_stream_into_parts_and_ends_with_its_deadline(queue_bench: QueueBench) -> None:
    bench = queue_bench.bench
    ids = queue_bench.send(1, 2, 3)
    job = queue_bench.running(hours=2)
    assert (job.state, job.is_queue, job.total_rows) == ("running", True, None)

    queue_bench.work()
    bench.tick(job)

    assert [(line["message"], line["outputs"]) for line in lines_of(queue_bench)] == [
        (ids[0], [2]),
        (ids[1], [4]),
        (ids[2], [6]),
    ]
    assert queue_bench.pending() == 0
    assert (job.done_rows, job.failed_rows, drained_of(job).waiting) == (3, 0, 0)
    assert [(c.number, c.rows) for c in BatchChunk.objects.all()] == [(0, 3)]

    ids += queue_bench.send(4)
    queue_bench.work()
    bench.tick(job)
    assert (job.state, job.done_rows) == ("running", 4), "a queue is never done"
    assert [line["message"] for line in lines_of(queue_bench)] == ids

    bench.tick(job, seconds=3 * 3600)
    assert (job.state, job.ends_as) == ("stopping", "succeeded")
    bench.tick(job)
    assert (job.state, job.state_reason) == (
        "succeeded",
        "The limit of 2 hours is reached. Resume the job to continue.",
    )
    assert [bench.made(kind) for kind in ("ScaledJob", "Secret")] == [[], []]
    assert bench.keys("batch-work/") == []


def test_answers_of_another_stream_are_there_once(queue_bench: QueueBench) -> None:
    ids = queue_bench.send(1, 2)
    job = queue_bench.running(answers="answers")

    queue_bench.work()
    queue_bench.bench.tick(job)

    assert queue_bench.answers() == {ids[0]: [2], ids[1]: [4]}
    assert (job.done_rows, BatchChunk.objects.count()) == (2, 0)


EFFECTS = [
    (RedisStream, "read"),
    (RedisStream, "acknowledge"),
    (RedisStream, "answer"),
    (RedisStream, "bury"),
    (RedisStream, "release"),
    (RedisStream, "leave"),
    (worker_outbox.Outbox, "create"),
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("place", ["parts", "stream"])
@pytest.mark.parametrize(("owner", "effect"), EFFECTS, ids=[name for _, name in EFFECTS])
def test_a_worker_killed_at_any_effect_loses_no_message(
    queue_bench: QueueBench,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    effect: str,
    place: str,
    moment: str,
) -> None:
    ids = queue_bench.send(1, 2, 13, 4)
    answers = "answers" if place == "stream" else ""
    job = queue_bench.running(answers=answers)
    first = queue_bench.consumer(Triton(refuses=frozenset({13})))
    is_killed = run_until_killed(first, monkeypatch, owner, effect, moment)
    queue_bench.work(Triton(refuses=frozenset({13})))
    queue_bench.bench.tick(job)

    assert is_killed is not (effect == ("acknowledge" if place == "stream" else "answer"))
    expected = {ids[0]: [2], ids[1]: [4], ids[3]: [8]}
    if place == "stream":
        assert queue_bench.answers() == expected, "each is there once"
    else:
        assert queue_bench.answered() == expected
    (dead,) = queue_bench.entries(DEAD)
    assert (dead["slipway.id"], dead["slipway.reason"]) == (ids[2], "the model refuses 13")
    assert dead["request"] == request_of(13), "it can be sent again as it was"
    assert queue_bench.pending() == 0


def test_a_message_that_ends_triton_is_a_dead_letter_and_takes_no_other_along(
    queue_bench: QueueBench,
) -> None:
    ids = queue_bench.send(*range(1, 41))
    job = queue_bench.running(answers="answers", requests=16)
    for _ in range(10):
        triton = Triton(crashes_at=frozenset({17}))
        try:
            queue_bench.work(triton)
            break
        except worker_store.WorkerEnded:
            assert not triton.is_alive
    assert queue_bench.pending() == 0
    queue_bench.bench.tick(job)

    assert queue_bench.answers() == {ids[n - 1]: [2 * n] for n in range(1, 41) if n != 17}
    (dead,) = queue_bench.entries(DEAD)
    assert dead["slipway.id"] == ids[16]
    assert dead["slipway.reason"] == "it was delivered 3 times and its worker ended each time"


def test_a_worker_that_is_reclaimed_gives_back_what_it_holds_as_if_never_delivered(
    queue_bench: QueueBench,
) -> None:
    ids = queue_bench.send(*range(1, 31))
    queue_bench.running(answers="answers", requests=1)
    first = queue_bench.consumer()

    class Reclaimed(Triton):
        def answer(self, number: int, line: bytes) -> dict[str, Any]:
            if len(self.asked) == 1:
                first.stopping.set()
            return super().answer(number, line)

    first.server = Reclaimed()
    first.run()
    assert first.server.asked == [1, 2], "what was sent is finished, and nothing new is sent"
    # The four that were read are two answers and two that wait again, with no delivery counted.
    (one, two) = queue_bench.client.xpending_range(STREAM, GROUP, "-", "+", 10)
    assert [one["message_id"].decode(), two["message_id"].decode()] == ids[2:4]
    assert (one["times_delivered"], two["times_delivered"]) == (0, 0)

    # The next one takes them at once, before they have been idle for long.
    second = queue_bench.work(redelivery=3600)
    assert sorted(second.asked) == list(range(3, 31))
    assert len(queue_bench.answers()) == 30
    assert queue_bench.pending() == 0


def test_what_a_living_worker_holds_is_not_taken_by_another(queue_bench: QueueBench) -> None:
    queue_bench.send(1, 2)
    queue_bench.running(answers="answers")
    first, second = queue_bench.consumer(), queue_bench.consumer()
    held = first.source.read(10, 0 + 1)
    first.hold(held)

    assert second.source.claim(60_000, 10) == []
    first.keep_held()
    (row, _) = queue_bench.client.xpending_range(STREAM, GROUP, "-", "+", 10)
    assert (row["consumer"], row["times_delivered"]) == (b"pod-1", 1), "a heartbeat is no delivery"


def test_a_message_may_hold_the_columns_of_one_row(queue_bench: QueueBench) -> None:
    good = queue_bench.client.xadd(STREAM, {"x": "7", "id": "r1"}).decode()
    queue_bench.client.xadd(STREAM, {"x": "seven"})
    queue_bench.client.xadd(STREAM, {"y": "7"})
    queue_bench.client.xadd(STREAM, {"request": "{no"})
    queue_bench.client.xadd(STREAM, {"request": "[]"})
    queue_bench.running(answers="answers")

    queue_bench.work(columns=[["x", "INT32", [1, 1]]])

    assert queue_bench.answers() == {good: [14]}
    assert [entry["slipway.reason"].split(":")[0] for entry in queue_bench.entries(DEAD)] == [
        "field x",
        "the message has neither a request nor the input x",
        "the request is not JSON",
        'the request has no "inputs" of the inference protocol',
    ]


def test_more_dead_letters_than_the_error_limit_fail_it_and_resuming_counts_anew(
    queue_bench: QueueBench,
) -> None:
    bench = queue_bench.bench
    queue_bench.send(1, 13, 13)
    job = queue_bench.running(error_limit=1)
    triton = Triton(refuses=frozenset({13}))
    queue_bench.work(triton)
    assert triton.asked.count(13) == 6, "each was tried three times"
    bench.tick(job)
    bench.tick(job)
    assert (job.state, job.state_reason) == (
        "failed",
        "2 messages are dead letters, more than 1. First: the model refuses 13",
    )
    assert (job.done_rows, job.failed_rows, drained_of(job).retried) == (3, 2, 4)

    requests.resume(actor=bench.world.member, job_id=job.pk)
    queue_bench.send(5)
    bench.tick(job)
    bench.tick(job)
    queue_bench.work()
    bench.tick(job)
    assert (job.state, job.attempt, job.done_rows, job.failed_rows) == ("running", 2, 4, 2)
    assert [line["outputs"] for line in lines_of(queue_bench)] == [[2], [10]]


def test_reports_of_a_pod_that_lies_count_nothing(queue_bench: QueueBench) -> None:
    bench = queue_bench.bench
    job = queue_bench.running()
    bodies = [b"", b"[]", b'{"answered": -1}', json.dumps({"answered": 10**12}).encode()]
    for number, body in enumerate(bodies):
        bench.put(body, f"batch-work/{job.pk}/reports/{number:07d}.json")
    bench.tick(job)
    assert (job.state, job.done_rows, drained_of(job).reports) == ("running", 0, 4)

    queue_bench.send(1)
    bench.tick(job, seconds=300)
    queue_bench.work()
    bench.tick(job)
    assert job.done_rows == 1


def test_addresses_that_are_used_up_are_followed_by_others(
    queue_bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "LISTED", 2)
    job = queue_bench.running()
    monkeypatch.setattr(worker_outbox, "pause", lambda _: queue_bench.bench.tick(job, seconds=300))
    for value in range(1, 6):
        queue_bench.send(value)
        queue_bench.work()
    queue_bench.bench.tick(job)

    assert [line["outputs"] for line in lines_of(queue_bench)] == [[2], [4], [6], [8], [10]]
    assert job.done_rows == 5
    assert drained_of(BatchJob.objects.get()).next_part == 5
