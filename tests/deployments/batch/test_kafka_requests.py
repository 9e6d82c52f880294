"""What a request of a job that drains a topic of Kafka is refused for, and the objects that it makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.batch.domain.sources.kafka.kind import KafkaKind
from deployments.batch.domain.sources.kafka.marks import PartitionMark
from deployments.models import BatchJob
from portal.core.errors import Invalid
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.test_sqs_requests import made

TOPIC = "kafka://kafka-0.vision.svc:9092,kafka-1.vision.svc:9092/requests"


@pytest.mark.parametrize(
    ("field", "values", "problem"),
    [
        (
            "input",
            {"input": "kafka://kafka.nlp.svc:9092/t"},
            "vision may not read queues at kafka.nlp",
        ),
        (
            "input",
            {"input": "kafka://kafka.vision.svc:9092,evil.example.com:9092/t"},
            "vision may not read queues at evil.example.com:9092",
        ),
        ("input", {"input": "kafka://kafka.vision.svc/t"}, "Enter a topic of Kafka"),
        (
            "input",
            {"input": "kafka://u:p@kafka.vision.svc:1/t"},
            "User and password are in a Secret",
        ),
        ("input", {"input": "kafka://kafka.vision.svc:99999/t"}, "Enter a topic of Kafka"),
        ("output", {"output": TOPIC + "-out"}, "Answers to messages of Kafka go to a prefix of S3"),
        ("dead_letters", {"dead_letters": "requests"}, "requests is the topic of messages"),
        ("dead_letters", {"dead_letters": "a:b"}, "Enter the name of a topic"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_stored(
    bench: Bench, field: str, values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        bench.request(**{"input": TOPIC, **values})
    assert problem in refusal.value.fields[field]
    assert not BatchJob.objects.exists()


def test_keda_counts_the_lag_and_workers_get_the_client_by_its_digest(bench: Bench) -> None:
    job = bench.running(input=TOPIC, secret="kafka-auth", consumer_group="scorers")

    scaled = made(bench, "ScaledJob")
    assert scaled["spec"]["triggers"] == [
        {
            "type": "kafka",
            "name": "messages",
            "metadata": {
                "bootstrapServers": "kafka-0.vision.svc:9092,kafka-1.vision.svc:9092",
                "consumerGroup": "scorers",
                "topic": "requests",
                "lagThreshold": "1000",
                "activationLagThreshold": "0",
                "offsetResetPolicy": "earliest",
            },
            "authenticationRef": {"name": f"batch-{job.pk}-1"},
        }
    ]
    keys = ["sasl", "username", "password", "tls"]
    assert made(bench, "TriggerAuthentication")["spec"] == {
        "secretTargetRef": [{"parameter": k, "name": "kafka-auth", "key": k} for k in keys]
    }
    container = scaled["spec"]["jobTargetRef"]["template"]["spec"]["containers"][0]
    env = {item["name"]: item for item in container["env"]}
    assert env["SLIPWAY_KAFKA_PASSWORD"]["valueFrom"] == {
        "secretKeyRef": {"name": "kafka-auth", "key": "password"}
    }
    plan = json.loads(env["SLIPWAY_BATCH"]["value"])["source"]
    library = KafkaKind().library()
    assert library is not None
    assert plan["library"] == library.digest
    assert (plan["dead_letters"], plan["group"]) == ("requests-dead", "scorers")
    key = f"batch-work/{job.pk}/library/1.zip"
    stored = bench.s3.get_object(Bucket=bench.bucket, Key=key)["Body"].read()
    assert stored == library.archive
    assert len(container["command"][2]) < 128 * 1024, "the most of one argument in Linux"


def test_what_was_sent_and_settled_is_read_from_the_metadata_of_a_commit() -> None:
    mark = PartitionMark(None)
    mark.send([10, 11, 13], 1)
    for offset in (11, 13):
        mark.settle(offset)
    mark.advance()
    again = PartitionMark(mark.offset, mark.text())

    assert (again.offset, again.done) == (10, {11, 13})
    assert [again.deliveries(n) for n in (10, 13, 14)] == [2, 2, 1]

    again.send([10], 2)
    again.settle(10)
    again.advance()
    assert (again.offset, PartitionMark(again.offset, again.text()).done) == (12, {13})


@pytest.mark.parametrize("text", ["hello", "[]", '{"tries": "x"}', "{"])
def test_metadata_of_another_program_says_nothing(text: str) -> None:
    assert PartitionMark(5, text).deliveries(5) == 1
