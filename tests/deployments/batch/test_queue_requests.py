"""What a request of a job that drains a queue is refused for, and what it shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.batch.services import requests
from deployments.models import BatchJob
from fleet.models import Cluster
from portal.accounts.models import User
from portal.core.errors import Invalid
from tests.deployments.batch.queue_bench import QueueBench, Triton
from tests.page import page


@pytest.mark.parametrize(
    ("field", "values", "problem"),
    [
        ("input", {"input": "redis://evil.example.com:6379/s"}, "vision may not read queues at"),
        ("input", {"input": "redis://redis.nlp.svc:6379/s"}, "vision may not read queues at"),
        ("input", {"input": "redis://user:secret@h:1/s"}, "The password is in a Secret."),
        ("input", {"input": "redis://h:99999/s"}, "Enter a stream of Redis or Valkey"),
        ("output", {"output": "redis://127.0.0.1:1/other"}, "a stream of the same server"),
        ("output", {"output": "SAME"}, "need different streams"),
        ("output", {"output": "s3://elsewhere/x/"}, "vision may not write s3://elsewhere/x/"),
        ("dead_letters", {"dead_letters": "requests"}, "requests is the stream of messages"),
        ("tries", {"tries": 1}, "Use 2 to 20 attempts."),
        ("hours", {"hours": 721}, "Use 1 to 720 hours."),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_stored(
    queue_bench: QueueBench, field: str, values: dict[str, Any], problem: str
) -> None:
    address = queue_bench.address
    changed = {"input": address, **{k: address if v == "SAME" else v for k, v in values.items()}}
    with pytest.raises(Invalid) as refusal:
        queue_bench.bench.request(**changed)
    assert problem in refusal.value.fields[field]
    assert not BatchJob.objects.exists()


def test_the_teams_own_services_need_no_setting(queue_bench: QueueBench, settings: Any) -> None:
    settings.SLIPWAY_BATCH_QUEUES = []
    with pytest.raises(Invalid):
        queue_bench.bench.request(input=queue_bench.address)

    job = queue_bench.bench.request(
        input="rediss://worker@redis.vision.svc:6379/in", secret="queue-auth", workers=2
    )
    queue_bench.bench.tick(job)
    queue_bench.bench.tick(job)

    (policy,) = [
        made
        for made in queue_bench.bench.made("NetworkPolicy")
        if made["metadata"]["name"] == f"batch-{job.pk}-1"
    ]
    own = {"kubernetes.io/metadata.name": "vision"}
    assert policy["spec"]["egress"] == [{"to": [{"namespaceSelector": {"matchLabels": own}}]}]
    (scaled,) = queue_bench.bench.made("ScaledJob")
    assert scaled["spec"]["maxReplicaCount"] == 2
    trigger = scaled["spec"]["triggers"][0]
    assert trigger["metadata"] == {
        "address": "redis.vision.svc:6379",
        "stream": "in",
        "consumerGroup": "slipway",
        "enableTLS": "true",
        "username": "worker",
        "lagCount": "1000",
    }
    (authentication,) = queue_bench.bench.made("TriggerAuthentication")
    assert authentication["spec"]["secretTargetRef"] == [
        {"parameter": "password", "name": "queue-auth", "key": "password"}
    ]
    assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}

    requests.cancel(actor=queue_bench.bench.world.member, job_id=job.pk)
    queue_bench.bench.tick(job)
    assert job.state == "canceled"
    for kind in ("ScaledJob", "TriggerAuthentication", "Secret"):
        assert queue_bench.bench.made(kind) == []


def test_a_cluster_without_keda_is_refused(queue_bench: QueueBench) -> None:
    row = Cluster.objects.get(pk=queue_bench.bench.world.cluster_id)
    row.capabilities["features"]["scaled-jobs"] = {"is_there": False, "version": "", "why": ""}
    row.save()
    with pytest.raises(Invalid, match="KEDA's ScaledJob is not installed"):
        queue_bench.bench.request(input=queue_bench.address)
    assert not BatchJob.objects.exists()


def test_above_the_budget_a_lead_decides_as_for_files(queue_bench: QueueBench) -> None:
    team = queue_bench.bench.world.team
    team.monthly_budget_amount = 10
    team.save()
    job = queue_bench.bench.request(input=queue_bench.address, hours=720)
    queue_bench.bench.tick(job)
    assert job.state == "submitted"
    assert "It can cost $724" in job.state_reason
    assert queue_bench.bench.made("ScaledJob") == []


def test_page_and_rest_show_what_waits_is_done_and_is_dead(
    queue_bench: QueueBench, signed_in: Callable[[User], Client]
) -> None:
    queue_bench.send(1, 2, 13)
    job = queue_bench.running(answers="answers")
    queue_bench.work(Triton(refuses=frozenset({13})))
    queue_bench.bench.tick(job)
    client = signed_in(queue_bench.bench.world.member)

    shown = page(client.get("/vision/batch/scores"))
    for text in ("Waiting 0", "Answered 2", "Retries 2", "Dead letters 1"):
        assert text in shown.text
    assert "1 message is a dead letter in requests:dead. First: the model refuses 13" in shown.text
    details = json.loads(client.get(f"/api/v1/batch-jobs/{job.pk}").content)
    assert (details["is_queue"], details["total_rows"]) == (True, None)
    assert details["queue"] | {"waiting_at": None} == {
        "waiting": 0,
        "waiting_at": None,
        "answered": 2,
        "dead_letters": 1,
        "retried": 2,
        "group": "slipway",
        "dead_letters_in": "requests:dead",
    }
