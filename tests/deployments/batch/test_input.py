"""What a batch job reads: which files, which bytes, and what is refused before anything starts."""

from __future__ import annotations

import pytest

from deployments.batch.services import (
    requests,
)
from deployments.models import BatchChunk
from portal.core.errors import Conflict
from tests.deployments.batch.bench import IN, OUT, Bench


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "has no rows. Each line of its files is one row."),
        (b"\n \n", "has no rows. Each line of its files is one row."),
        (b"{}\n" + b"x" * (2**20 + 1), "Line 2 of batch/vision/in/rows.jsonl is longer than"),
    ],
)
def test_an_input_that_cannot_be_scored_fails_it_before_anything_starts(
    bench: Bench, body: bytes, reason: str
) -> None:
    bench.put(body)
    job = bench.request()
    bench.tick(job)

    assert job.state == "failed"
    assert reason in job.state_reason
    assert not BatchChunk.objects.exists()
    assert bench.world.cluster.writes == []
    with pytest.raises(Conflict, match="could not be read"):
        requests.resume(actor=bench.world.member, job_id=job.pk)


def test_there_is_no_file_at_the_address(bench: Bench) -> None:
    job = bench.request()
    bench.tick(job)
    assert (job.state, "There is no file at s3://" in job.state_reason) == ("failed", True)


def test_a_prefix_is_read_in_the_order_of_its_keys(bench: Bench) -> None:
    bench.put(b'{"n": 3}\n', f"{IN}b.jsonl")
    bench.put(b'{"n": 1}\n{"n": 2}', f"{IN}a.jsonl")
    bench.put(b"", f"{IN}folder/")
    bench.put(b"", f"{IN}empty.jsonl")
    job = bench.running(input=f"s3://{bench.bucket}/{IN}")
    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert job.state == "succeeded"
    assert [(row["row"], row["outputs"]) for row in bench.rows()] == [(1, [1]), (2, [2]), (3, [3])]


def test_the_bytes_are_those_that_were_planned_also_when_the_file_is_replaced(bench: Bench) -> None:
    bench.put(b'{"n": 1}\n')
    job = bench.running()
    bench.put(b'{"n": 7}\n{"n": 8}\n')
    bench.work()
    bench.tick(job)
    bench.tick(job)
    assert (job.state, bench.rows()) == ("succeeded", [{"row": 1, "outputs": [1]}])


def test_an_output_that_has_files_is_refused(bench: Bench) -> None:
    bench.put_rows(1)
    bench.put(b"mine", f"{OUT}scores/part-00000.jsonl")
    job = bench.request()
    bench.tick(job)
    assert (job.state, "has files already" in job.state_reason) == ("failed", True)
    assert bench.world.cluster.writes == []
