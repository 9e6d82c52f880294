"""`slipway batch` on the real application."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from deployments.models import BatchJob
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store
from fleet.models import Cluster
from portal.accounts.models import Team, User
from slipway_client.errors import Failed
from tests.client.terminal import connect, run, sign_in
from tests.deployments.batch.bench import IN, OUT, Bench
from tests.deployments.world import World

__all__ = ["sign_in"]


@pytest.fixture
def bench(world: World, s3_store: S3Store, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(object_store, "store", object_store.s3_store)
    return Bench(world, s3_store.client, settings.SLIPWAY_S3_BUCKET)


def test_a_job_is_started_listed_canceled_and_its_end_is_an_error(
    bench: Bench, sign_in: Callable[[User], str]
) -> None:
    bench.put_rows(3)
    sign_in(bench.world.member)
    places = [f"s3://{bench.bucket}/{IN}rows.jsonl", f"s3://{bench.bucket}/{OUT}scores/"]
    command = ["batch", "vision/detector:1", *places, "--name", "scores", "--cluster", "eks-test"]
    command += ["--instance-type", "g5.xlarge", "--capacity", "on-demand", "--no-wait"]

    started = run([*command, "--workers", "2", "--error-limit", "0"])
    assert (started.code, started.err) == (0, "")
    job = BatchJob.objects.get()
    assert f"The batch job vision/scores (id {job.pk}) is planning." in started.out
    assert (job.pods["workers"], job.pods["error_limit"]) == (2, 0)
    assert run(command).code != 0
    bench.tick(job)

    listed = run(["batch-jobs", "--team", "vision"])
    assert "0 of 3" in listed.out
    canceled = run(["cancel-batch", str(job.pk)])
    assert canceled.out.startswith("The batch job vision/scores is stopping.")
    bench.tick(job)
    with pytest.raises(Failed, match="is canceled: member canceled"):
        connect().batch_jobs.wait(job.pk)
    assert run(["resume-batch", str(job.pk)]).code != 0


def test_a_file_of_the_machine_is_uploaded_checked_scored_and_downloaded(
    bench: Bench, sign_in: Callable[[User], str], tmp_path: Path
) -> None:
    sign_in(bench.world.member)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"n": n, "x": "y" * 200}) + "\n" for n in range(1, 801)))
    output = f"s3://{bench.bucket}/{OUT}scores/"
    command = ["batch", "vision/detector:1", str(rows), output, "--name", "scores", "--cluster"]
    command += ["eks-test", "--instance-type", "g5.xlarge", "--capacity", "on-demand", "--no-wait"]

    checked = run([*command, "--check", "--hours", "2"])
    assert checked.code == 0, checked.err
    assert "$1.01 an hour, at most $2.01. On spot nodes the price is not known" in checked.out
    assert "It would start at once." in checked.out
    assert not BatchJob.objects.exists()
    started = run(command)
    assert started.code == 0, started.err
    job = bench.tick(BatchJob.objects.get())
    bench.tick(job)
    bench.work()
    bench.tick(job)
    bench.tick(job)

    target = tmp_path / "scores.jsonl"
    done = run(["batch-download", str(job.pk), str(target)])

    assert done.code == 0, done.err
    assert f"{job.chunks.count()} parts are in {target}." in done.out
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [(line["row"], line["outputs"]) for line in lines] == [(n, [n]) for n in range(1, 801)]
    again = run(["batch-download", str(job.pk), str(target)])
    assert again.code != 0
    assert "exists" in again.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl", "scores.jsonl"]


@pytest.mark.parametrize("dry_run", [[], ["--check"]])
def test_a_queue_on_a_cluster_without_kueue_is_refused(
    bench: Bench, sign_in: Callable[[User], str], dry_run: list[str]
) -> None:
    bench.put_rows(3)
    sign_in(bench.world.member)
    row = Cluster.objects.get(pk=bench.world.cluster_id)
    row.capabilities["features"]["kueue"] = {"is_there": False, "version": "", "why": ""}
    row.save()
    rows, output = f"s3://{bench.bucket}/{IN}rows.jsonl", f"s3://{bench.bucket}/{OUT}scores/"
    command = ["batch", "vision/detector:1", rows, output, "--name", "scores", "--cluster"]
    command += ["eks-test", "--instance-type", "g5.xlarge", "--queue", "serving", "--no-wait"]

    refused = run([*command, *dry_run])

    assert refused.code == 3
    assert "Cluster eks-test: Kueue is not installed." in refused.err
    assert not BatchJob.objects.exists()


def test_a_lead_finds_what_waits_and_decides_on_it_in_a_terminal(
    bench: Bench, sign_in: Callable[[User], str]
) -> None:
    bench.put_rows(3)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(1))
    job = bench.tick(bench.request())
    other = bench.tick(bench.request("other"))
    sign_in(bench.world.lead)

    listed = run(["approvals"])
    assert "batch-job" in listed.out
    assert "Run batch job scores" in listed.out
    approved = run(["approve-batch", str(job.pk), "--yes"])
    assert approved.code == 0, approved.err
    assert "Approved: the batch job vision/scores with detector:1 for member, at most $6.04." in (
        approved.out
    )
    assert run(["reject-batch", str(other.pk), "--comment", "too dear"]).code == 0
    states = dict(BatchJob.objects.values_list("name", "state"))
    assert states == {"scores": "running", "other": "rejected"}
