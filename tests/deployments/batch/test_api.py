"""Batch jobs by REST."""

from __future__ import annotations

from typing import Any

from rest_framework.test import APIClient

from deployments.models import BatchJob
from tests.deployments.batch.bench import IN, OUT, Bench

URL = "/api/v1/batch-jobs"


def client_of(user: Any) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def body_of(bench: Bench, **changed: Any) -> dict[str, Any]:
    return {
        "team": "vision",
        "name": "scores",
        "model": "detector",
        "version": 1,
        "cluster": "eks-test",
        "input": f"s3://{bench.bucket}/{IN}rows.jsonl",
        "output": f"s3://{bench.bucket}/{OUT}scores/",
        "instance_type": "g5.xlarge",
        "capacity": "on-demand",
        **changed,
    }


def test_a_job_is_requested_followed_and_canceled(bench: Bench) -> None:
    bench.put_rows(500)
    client = client_of(bench.world.member)

    made = client.post(URL, body_of(bench), format="json")
    assert made.status_code == 201, made.json()
    address = f"{URL}/{made.json()['id']}"
    job = bench.tick(BatchJob.objects.get())
    bench.tick(job)
    bench.work()
    bench.tick(job)
    shown = client.get(address).json()

    assert (shown["state"], shown["done_rows"], shown["total_rows"]) == ("stopping", 500, 500)
    assert (shown["version"], shown["cost_limit"]) == ("detector:1", "6.040000")
    assert shown["settings"]["capacity"] == "on-demand"
    assert shown["chunks"] == shown["done_chunks"] == job.chunks.count()
    assert [row["id"] for row in client.get(URL).json()["results"]] == [job.pk]
    assert client.get(URL, {"state": "failed"}).json()["results"] == []
    refused = client.post(f"{address}/cancel", {}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "batch_state")


def test_bad_input_is_refused_by_field(bench: Bench) -> None:
    client = client_of(bench.world.member)
    for changed, field in (
        ({"output": "s3://elsewhere/x/"}, "output"),
        ({"workers": 1000}, "workers"),
        ({"wrokers": 2}, "wrokers"),
        ({"version": "x"}, "version"),
    ):
        answer = client.post(URL, body_of(bench, **changed), format="json")
        assert answer.status_code == 422
        assert field in str(answer.json())
    assert client_of(bench.world.stranger).get(URL).json()["results"] == []
    assert not BatchJob.objects.exists()
