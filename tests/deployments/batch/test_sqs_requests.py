"""What a request of a job that drains a queue of SQS is refused for, and the objects that it makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.batch.services import requests
from deployments.models import BatchJob
from portal.accounts.models import User
from portal.core.errors import Invalid
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.sqs_bench import SqsBench
from tests.page import page

AWS = "https://sqs.eu-west-1.amazonaws.com/111122223333/vision-requests"
OF_VISION = "sqs.eu-west-1.amazonaws.com/111122223333/{team}-*"


@pytest.fixture
def bench_of_aws(bench: Bench, settings: Any) -> Bench:
    settings.SLIPWAY_BATCH_QUEUES = [OF_VISION]
    return bench


@pytest.mark.parametrize(
    ("field", "values", "problem"),
    [
        ("input", {"input": AWS.replace("vision-", "nlp-")}, "Allowed: *.vision.svc:*"),
        (
            "input",
            {"input": AWS.replace("1111", "2222")},
            "vision may not read queues at sqs.eu-west-1",
        ),
        ("input", {"input": AWS.replace("https", "http")}, "Enter the URL of a queue of SQS"),
        ("input", {"input": AWS.replace(".com/", ".com:8443/")}, "Enter the URL of a queue of SQS"),
        ("input", {"input": "https://s3.amazonaws.com/111122223333/q"}, "Enter the URL of a queue"),
        ("input", {"input": "https://x.vision.svc:1/q"}, "Enter the URL of a queue of SQS"),
        ("input", {"input": "https://key:secret@x.vision.svc/111122223333/q"}, "Enter the URL"),
        ("output", {"output": AWS + "-out"}, "Answers to messages of SQS go to a prefix of S3"),
        ("output", {"output": "redis://redis.vision.svc:1/a"}, "Answers go to a prefix of S3"),
        ("consumer_group", {"consumer_group": "g"}, "SQS has no consumer groups"),
        ("dead_letters", {"dead_letters": "a:dead"}, "Enter the name of a queue beside"),
        ("dead_letters", {"dead_letters": "vision-requests"}, "is the queue of messages"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_stored(
    bench_of_aws: Bench, field: str, values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        bench_of_aws.request(**{"input": AWS, **values})
    assert problem in refusal.value.fields[field]
    assert not BatchJob.objects.exists()


def made(bench: Bench, kind: str) -> dict[str, Any]:
    (found,) = [item for item in bench.made(kind) if "batch-" in item["metadata"]["name"]][-1:]
    return dict(found)


def test_kedas_own_role_reads_the_length_and_the_role_of_the_models_the_messages(
    bench_of_aws: Bench,
) -> None:
    job = bench_of_aws.running(input=AWS, messages_per_worker=50)

    assert made(bench_of_aws, "TriggerAuthentication")["spec"] == {
        "podIdentity": {"provider": "aws"}
    }
    scaled = made(bench_of_aws, "ScaledJob")
    assert scaled["spec"]["triggers"] == [
        {
            "type": "aws-sqs-queue",
            "name": "messages",
            "metadata": {
                "queueURL": AWS,
                "awsRegion": "eu-west-1",
                "queueLength": "50",
                "scaleOnInFlight": "true",
            },
            "authenticationRef": {"name": f"batch-{job.pk}-1"},
        }
    ]
    pod = scaled["spec"]["jobTargetRef"]["template"]["spec"]
    assert pod["serviceAccountName"] == "slipway-models"
    assert [item["name"] for item in pod["containers"][0]["env"]][-1] == "SLIPWAY_CONSUMER"
    assert made(bench_of_aws, "NetworkPolicy")["spec"]["egress"][0]["ports"] == [
        {"port": 443, "protocol": "TCP"}
    ]

    requests.cancel(actor=bench_of_aws.world.member, job_id=job.pk)
    bench_of_aws.tick(job)
    assert job.state == "canceled"
    for kind in ("ScaledJob", "TriggerAuthentication", "Secret"):
        assert bench_of_aws.made(kind) == []


def test_a_server_of_the_team_with_the_same_api_is_read_with_keys_of_a_secret(bench: Bench) -> None:
    address = "http://mq.vision.svc:9324/000000000000/jobs.fifo"
    bench.running(input=address, secret="mq-keys")

    scaled = made(bench, "ScaledJob")
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["metadata"]["awsEndpoint"] == "http://mq.vision.svc:9324"
    assert trigger["metadata"]["awsRegion"] == "us-east-1"
    assert made(bench, "TriggerAuthentication")["spec"] == {
        "secretTargetRef": [
            {"parameter": "awsAccessKeyID", "name": "mq-keys", "key": "AWS_ACCESS_KEY_ID"},
            {"parameter": "awsSecretAccessKey", "name": "mq-keys", "key": "AWS_SECRET_ACCESS_KEY"},
        ]
    }
    pod = scaled["spec"]["jobTargetRef"]["template"]["spec"]
    env = {item["name"]: item.get("valueFrom") for item in pod["containers"][0]["env"]}
    key = {"name": "mq-keys", "key": "AWS_SECRET_ACCESS_KEY"}
    assert env["AWS_SECRET_ACCESS_KEY"] == {"secretKeyRef": key}
    assert "jobs-dead.fifo" in str(pod)


def test_page_and_rest_name_the_queue_of_dead_letters_and_no_group(
    sqs_bench: SqsBench, signed_in: Callable[[User], Client]
) -> None:
    sqs_bench.send_body("{no")
    job = sqs_bench.running()
    sqs_bench.work()
    sqs_bench.bench.tick(job)
    client = signed_in(sqs_bench.bench.world.member)

    shown = page(client.get("/vision/batch/scores"))
    assert (
        "1 message is a dead letter in requests-dead. First: the request is not JSON" in shown.text
    )
    assert "Consumer group" not in shown.text
    details = client.get(f"/api/v1/batch-jobs/{job.pk}").json()
    assert (details["queue"]["group"], details["queue"]["dead_letters_in"]) == ("", "requests-dead")
