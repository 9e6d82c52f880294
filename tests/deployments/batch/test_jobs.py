"""A batch job from its request to its output: each row once, whatever dies, and nothing is left."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from deployments.batch.domain import worker_program
from deployments.batch.gateways import batch_store
from deployments.batch.services import (
    advance,
    checkpoints,
    cluster_job,
    decisions,
    links,
    requests,
)
from deployments.models import BatchChunk, BatchJob
from fleet.kube.domain.errors import ObjectInvalid, Refused, Unreachable
from fleet.models import Cluster, Workload
from portal.accounts.models import Team
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from portal.notifications.models import Notice
from tests import plain_http
from tests.deployments.batch.bench import IN, OUT, Bench, Server


class Died(BaseException):
    """The worker of the portal."""


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

    with pytest.raises(worker_program.Ended):
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
    assert job.first_error == "row 2: the row is no JSON"
    assert bench.rows()[1] == {"row": 2, "error": "the row is no JSON"}


def test_more_errors_than_allowed_fail_it_and_it_can_be_resumed(bench: Bench) -> None:
    bench.put(b"{no\n{no\n")
    job = bench.running(error_limit=1)
    bench.work()
    bench.tick(job)
    bench.tick(job)

    assert job.state == "failed"
    assert job.state_reason == (
        "2 rows have no answer, more than 1. First: row 1: the row is no JSON"
    )
    assert "failed" in Notice.objects.get().subject


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


OTHERS = "batch/nlp/"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("output", f"s3://BUCKET/{OTHERS}x/", "may not write"),
        ("output", "s3://BUCKET/batch/vision/", "may not write"),
        ("output", "s3://BUCKET/batch/vision-lab/x/", "may not write"),
        ("output", "s3://BUCKET/repositories/vision/x/", "may not write"),
        ("output", "s3://other-bucket/batch/vision/x/", "may not write"),
        ("output", "s3://BUCKET/batch/vision/../nlp/x/", "empty or dotted folder"),
        ("output", "s3://BUCKET/batch/vision//x/", "empty or dotted folder"),
        ("output", "s3://BUCKET/batch/vision/in/", "must not lie in the input"),
        ("output", "batch/vision/x/", "Enter an address such as"),
        ("output", "s3://BUCKET/batch/vision/a%2f..\n/", "Enter an address such as"),
        ("input", f"s3://BUCKET/{OTHERS}rows.jsonl", "may not read"),
        ("input", "s3://BUCKET/repositories/nlp/m/1/", "may not read"),
        ("input", "s3://BUCKET/batch/vision-lab/rows.jsonl", "may not read"),
        ("input", "https://example.org/rows.jsonl", "Enter an address such as"),
        ("name", "Upper", "lower-case"),
        ("name", "", "lower-case"),
        ("cluster", "nowhere", "There is no cluster 'nowhere'"),
        ("instance_type", "p5.48xlarge", "The cluster has no p5.48xlarge"),
        ("gpu_resource", "nvidia.com/mig-1g.5gb", "Offered: g5.xlarge with nvidia.com/gpu"),
        ("workers", 9, "9 GPUs are needed and 8 of 8 are left"),
        ("workers", 0, "Use 1 to 64 workers."),
        ("hours", 10**6, "Use 1 to 72 hours."),
        ("cpu", "2; rm", "Use whole cores"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_stored(
    bench: Bench, field: str, value: Any, problem: str
) -> None:
    if isinstance(value, str):
        value = value.replace("BUCKET", bench.bucket)
    with pytest.raises(Invalid) as refusal:
        bench.request(**({"name": value} if field == "name" else {field: value}))
    assert field in refusal.value.fields
    assert problem in refusal.value.fields[field]
    assert not BatchJob.objects.exists()
    assert not AuditEvent.objects.filter(action__startswith="batch.").exists()


def test_buckets_of_imports_can_be_read_by_their_team(bench: Bench, settings: Any) -> None:
    settings.SLIPWAY_IMPORT_S3 = ("s3://lake/{team}/",)
    assert bench.request(input="s3://lake/vision/rows.jsonl").state == "planning"
    with pytest.raises(Invalid, match="may not read"):
        bench.request("other", input="s3://lake/nlp/rows.jsonl")
    # Nor the portal's own bucket, whatever is allowed of it to imports.
    settings.SLIPWAY_IMPORT_S3 = (f"s3://{bench.bucket}/",)
    with pytest.raises(Invalid, match="may not read"):
        bench.request("other", input=f"s3://{bench.bucket}/repositories/nlp/m/1/")


def test_a_version_that_is_not_ready_is_refused(bench: Bench) -> None:
    bench.world.version1.state = "archived"
    bench.world.version1.save()
    with pytest.raises(Invalid, match="is archived"):
        bench.request()
    with pytest.raises(NotFound):
        bench.request(version=99)


def test_the_same_job_twice_and_the_same_output_twice_are_refused(bench: Bench) -> None:
    job = bench.request()
    with pytest.raises(Conflict) as twice:
        bench.request()
    with pytest.raises(Conflict) as taken:
        bench.request("other", output=job.output.rstrip("/"))
    assert (twice.value.code, taken.value.code) == ("batch_exists", "batch_output_taken")
    assert BatchJob.objects.count() == 1


def test_two_requests_at_the_same_time_make_one_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = requests._require_free
    calls: list[int] = []

    def race(*args: Any) -> None:
        # The other tab comes between the check and the row.
        calls.append(1)
        if len(calls) == 1:
            bench.request()
        else:
            real(*args)

    monkeypatch.setattr(requests, "_require_free", race)
    with pytest.raises(Conflict, match="already"):
        bench.request()
    assert BatchJob.objects.count() == 1


def test_quota_counts_other_jobs(bench: Bench) -> None:
    bench.request(workers=5)
    with pytest.raises(Invalid, match="4 GPUs are needed and 3 of 8 are left"):
        bench.request("other", workers=4)
    assert bench.request("other", workers=3).state == "planning"


def test_above_the_budget_another_lead_decides(bench: Bench) -> None:
    bench.put_rows(1)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(10))
    job = bench.request(workers=2)
    bench.tick(job)

    assert job.state == "submitted"
    assert job.state_reason == "It can cost $12.07; with it the month comes to $12.07 of $10.00."
    assert bench.world.cluster.writes == []
    assert Notice.objects.get().event == "batch.requested"
    people = bench.world
    for actor, error in (
        (people.member, Forbidden),
        (people.viewer, Forbidden),
        (people.stranger, NotFound),
    ):
        with pytest.raises(error):
            decisions.approve(actor=actor, job_id=job.pk)
    with pytest.raises(Invalid, match="Give a reason"):
        decisions.reject(actor=people.lead, job_id=job.pk)
    decisions.approve(actor=people.lead, job_id=job.pk, comment="go")
    job.refresh_from_db()
    assert (job.state, job.decided_by) == ("running", people.lead)
    with pytest.raises(Conflict):
        decisions.approve(actor=people.lead2, job_id=job.pk)


def test_who_requests_it_does_not_approve_it(bench: Bench) -> None:
    bench.put_rows(1)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(1))
    job = requests.request(actor=bench.world.lead, team_slug="vision", draft=bench.draft())
    bench.tick(job)
    with pytest.raises(Forbidden, match="four eyes"):
        decisions.approve(actor=bench.world.lead, job_id=job.pk)
    decisions.reject(actor=bench.world.lead2, job_id=job.pk, comment="no")
    job.refresh_from_db()
    assert (job.state, job.state_reason, job.next_check_at) == ("rejected", "no", None)
    # Its output can be used again.
    assert bench.request("again", output=job.output).state == "planning"


def test_a_binding_budget_refuses_it(bench: Bench) -> None:
    Team.objects.filter(slug="vision").update(
        monthly_budget_amount=Decimal(10), is_budget_binding=True
    )
    with pytest.raises(Invalid, match=r"of \$10.00. Use fewer workers or hours"):
        bench.request(workers=2)
    assert not BatchJob.objects.exists()


def test_a_price_that_is_not_known_needs_approval(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.request(capacity="spot")
    bench.tick(job)
    assert (job.state, job.cost_limit_amount) == ("submitted", None)
    assert job.state_reason == "The price of its nodes is not known."


def test_nobody_decides_in_time(bench: Bench) -> None:
    bench.put_rows(1)
    job = bench.request(capacity="spot")
    bench.tick(job)
    bench.tick(job, seconds=7 * 86400)
    assert (job.state, "No decision was made" in job.state_reason) == ("failed", True)


def test_it_is_canceled_and_what_is_done_stays(bench: Bench) -> None:
    bench.put_rows(1000)
    job = bench.running()
    with pytest.raises(worker_program.Ended):
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
    with pytest.raises(worker_program.Ended):
        bench.work(Server(dies_at=500))
    bench.tick(job)
    done = job.done_rows
    bench.tick(job, seconds=2 * 3600)
    bench.tick(job)
    assert (job.state, job.done_rows) == ("failed", done)
    assert job.state_reason == "It was not done by its deadline. Resume it to go on."

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
        "A worker failed too often. Triton does not load the model: no memory Resume it to go on."
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
    assert (job.state, "The cluster refuses it: " in job.state_reason) == ("failed", True)
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
    (advance, "_write"),
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


def test_who_may_do_what(bench: Bench) -> None:
    people = bench.world
    for actor, error in ((people.viewer, Forbidden), (people.stranger, NotFound)):
        with pytest.raises(error):
            requests.request(actor=actor, team_slug="vision", draft=bench.draft())
    job = bench.request()
    for actor, error in ((people.viewer, Forbidden), (people.stranger, NotFound)):
        for run in (requests.cancel, requests.resume):
            with pytest.raises(error):
                run(actor=actor, job_id=job.pk)
    job.refresh_from_db()
    assert job.state == "planning"
    with pytest.raises(DomainError):
        requests.resume(actor=people.member, job_id=job.pk)
    assert Cluster.objects.count() == 1
