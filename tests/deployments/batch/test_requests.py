"""Requesting a batch job: what is refused, by name, and who may do what."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.batch.services import (
    requests,
)
from deployments.models import BatchJob
from fleet.models import Cluster
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.deployments.batch.bench import Bench

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
        ("input", "https://example.org/rows.jsonl", "files have s3:// addresses"),
        ("name", "Upper", "lowercase"),
        ("name", "", "lowercase"),
        ("cluster", "nowhere", "There is no cluster “nowhere”"),
        ("instance_type", "p5.48xlarge", "The cluster has no p5.48xlarge"),
        ("gpu_resource", "nvidia.com/mig-1g.5gb", "Offered: g5.xlarge with nvidia.com/gpu"),
        ("workers", 9, "9 GPUs are needed and 8 of 8 are left"),
        ("workers", 0, "Use 1 to 64 workers."),
        ("hours", 10**6, "Use 1 to 720 hours."),
        ("hours", 73, "Use 1 to 72 hours for a job over files."),
        ("secret", "queue-auth", "It is for jobs that drain a queue"),
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
