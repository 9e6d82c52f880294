"""A batch job from its request to its output: each row once, whatever a worker does."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from deployments.batch.domain import worker_program, worker_store
from deployments.batch.gateways import batch_store
from deployments.batch.services import (
    checkpoints,
    links,
)
from deployments.models import BatchJob
from fleet.models import Workload
from portal.audit.models import AuditEvent
from portal.notifications.models import Notice
from tests import plain_http
from tests.deployments.batch.bench import Bench, Server


def actions_of(job: BatchJob) -> list[str]:
    rows = AuditEvent.objects.filter(action__startswith="batch.").order_by("pk")
    return [row.action for row in rows]


def test_it_goes_from_the_request_to_the_output_and_leaves_nothing(bench: Bench) -> None:
    bench.put_rows(1000)

    job = bench.request(workers=2)
    assert (job.state, job.total_rows) == ("planning", None)
    assert job.cost_limit_amount == Decimal("12.07")
    bench.tick(job)
    assert (job.state, job.total_rows, job.done_rows) == ("running", 1000, 0)
    bench.tick(job)
    assert [made["metadata"]["name"] for made in bench.made("Job")] == [f"batch-{job.pk}-1"]
    workload = Workload.objects.get()
    assert workload.labels["deployment"] == "batch/scores"
    assert workload.triton_models == ["detector"]
    first = bench.work(index=0)
    bench.tick(job)
    assert 0 < job.done_rows < 1000
    assert job.done_rows == first.asked
    bench.work(index=1)
    bench.tick(job)
    assert (job.state, job.ends_as) == ("stopping", "succeeded")
    bench.tick(job)

    assert (job.state, job.done_rows, job.failed_rows) == ("succeeded", 1000, 0)
    assert job.next_check_at is None
    assert [(row["row"], row["outputs"]) for row in bench.rows()] == [
        (n, [n]) for n in range(1, 1001)
    ]
    assert (bench.made("Job"), bench.made("Secret")) == ([], [])
    assert bench.keys("batch-work/") == []
    workload.refresh_from_db()
    assert workload.retired_at is not None
    assert actions_of(job) == [
        "batch.requested",
        "batch.planned",
        "batch.stopping",
        "batch.succeeded",
    ]
    notice = Notice.objects.get()
    assert notice.subject == "Batch job vision/scores: succeeded"
    assert "1,000 of 1,000 rows are done." in notice.message


def test_a_worker_that_dies_half_way_loses_and_doubles_no_row(bench: Bench) -> None:
    bench.put_rows(1000)
    job = bench.running()

    with pytest.raises(worker_store.WorkerEnded):
        bench.work(Server(dies_at=500))
    bench.tick(job)
    done = job.done_rows
    assert 0 < done < 500
    # The next pod of the index starts before the portal has seen what is done.
    second = bench.work()
    bench.tick(job)
    bench.tick(job)

    assert job.state == "succeeded"
    assert second.asked == 1000 - done
    assert [row["row"] for row in bench.rows()] == list(range(1, 1001))


def test_two_pods_of_one_index_at_the_same_time_write_each_row_once(bench: Bench) -> None:
    bench.put_rows(600)
    job = bench.running()
    link = bench.link()

    class Slow(Server):
        def answer(self, number: int, line: bytes) -> dict[str, Any]:
            if self.asked == 50:
                # A whole other worker comes and goes while this one scores its first chunk.
                self.asked += 1
                bench.work(link=link)
            return super().answer(number, line)

    bench.work(Slow(), link=link)
    bench.tick(job)
    bench.tick(job)

    assert (job.state, job.done_rows) == ("succeeded", 600)
    assert [row["row"] for row in bench.rows()] == list(range(1, 601))


def test_rows_without_an_answer_are_counted_and_are_in_the_output(bench: Bench) -> None:
    bench.put(b'{"n": 1}\n\n{not json\n{"n": 3}')
    job = bench.running()
    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert (job.state, job.total_rows, job.failed_rows) == ("succeeded", 3, 1)
    assert job.first_error == "row 2: the row is not JSON"
    assert bench.rows()[1] == {"row": 2, "error": "the row is not JSON"}


def test_one_error_more_than_allowed_fails_it(bench: Bench) -> None:
    bench.put(b"{no\n")
    job = bench.running(error_limit=0)
    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert job.state_reason.startswith("1 row has no answer, more than 0. First: row 1: ")


def test_more_errors_than_allowed_fail_it_and_it_can_be_resumed(bench: Bench) -> None:
    bench.put(b"{no\n{no\n")
    job = bench.running(error_limit=1)
    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert job.state == "failed"
    assert job.state_reason == (
        "2 rows have no answer, more than 1. First: row 1: the row is not JSON"
    )
    assert "failed" in Notice.objects.get().subject


def test_a_job_without_any_answer_has_failed_whatever_its_error_limit(bench: Bench) -> None:
    bench.put(b"{no\n{no\n")
    job = bench.running(error_limit=100)
    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert (job.state, job.state_reason) == (
        "failed",
        "No row has an answer. First: row 1: the row is not JSON",
    )
    assert len(bench.rows()) == 2, "what is wrong with each is in the output"


def test_links_are_renewed_before_they_end_and_a_used_up_list_is_followed_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "LISTED", 2)
    bench.put_rows(1000)
    job = bench.running()
    before = json.loads(plain_http.client.get(bench.link()).content)
    bench.tick(job, seconds=300)
    after = json.loads(plain_http.client.get(bench.link()).content)
    assert [chunk["n"] for chunk in after["chunks"]] == [0, 1]
    assert job.chunks.count() > 4
    assert before["more"]
    for name in ("file", "put", "mark", "seen"):
        assert before["chunks"][0][name].split("?")[0] == after["chunks"][0][name].split("?")[0]
    passes: list[float] = []

    def pause(seconds: float) -> None:
        passes.append(seconds)
        bench.tick(job, seconds=30)

    monkeypatch.setattr(worker_program, "pause", pause)
    server = bench.work()
    bench.tick(job)
    bench.tick(job)
    assert (job.state, server.asked) == ("succeeded", 1000)
    assert len(passes) >= job.chunks.count() // 2 - 1


def test_a_mark_that_does_not_match_its_chunk_fails_the_job(bench: Bench) -> None:
    bench.put_rows(3)
    job = bench.running()
    for body in (b"", b"[]", b'{"rows": 2, "failed": 0}', b'{"rows": 3, "failed": -1}'):
        bench.put(body, f"batch-work/{job.pk}/marks/00000.json")
        assert "does not match its 3 rows" in checkpoints.collect(job, batch_store.BatchStore())
    bench.put(b'{"rows": 3, "failed": 0}', f"batch-work/{job.pk}/marks/00000.json")
    bench.tick(job)
    bench.tick(job)
    # It says that it is done, and its part is not there.
    assert (job.state, job.state_reason) == ("failed", "Part 0 of the output is missing.")
