"""`slipway batch` on the real application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deployments.models import BatchJob
from deployments.registry.gateways.object_store import S3Store
from portal.accounts.models import User
from slipway_client.errors import Failed
from tests.client.terminal import connect, run, sign_in
from tests.deployments.batch.bench import IN, OUT, Bench
from tests.deployments.world import World

__all__ = ["sign_in"]


@pytest.fixture
def bench(world: World, s3_store: S3Store, settings: Any) -> Bench:
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
