"""KEDA itself with the ScaledJob of a job that drains a topic: workers from zero by the lag of its group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deployments.batch.domain import job, observation, queues, scaled_job
from deployments.batch.domain.settings import BatchSettings
from fleet.kube.services import objects
from tests.cluster.kafka.broker import USER, Broker
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.test_keda import kafka
from tests.cluster.test_keda_jobs import NAME, jobs_of, read
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served

__all__ = ["kafka"]


def test_messages_of_a_topic_start_workers_and_none_when_all_are_committed(
    scaled: Scaled, kafka: Broker, journey: Callable[[str], None]
) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kafka-auth", "namespace": scaled.context.namespace},
        "stringData": {
            "sasl": "plaintext",
            "username": USER,
            "password": kafka.password,
            "tls": "disable",
        },
    }
    scaled.admin.apply([secret])
    settings = BatchSettings(
        instance_type="g5.xlarge", workers=3, secret="kafka-auth", messages_per_worker=4
    )
    queue = queues.read(f"kafka://{kafka.address}/requests", "s3://b/batch/vision/out/", settings)
    version = replace(served("triton"), spec=job.spec_of(settings))
    kafka.create_topic("requests", partitions=2)
    # The group has committed nothing yet.
    kafka.send("requests", range(3))
    manifests = scaled_job.objects_of(
        scaled.context, version, settings, queue, name=NAME, columns=None, until=1.0
    )
    manifests[-1]["spec"]["pollingInterval"] = 1
    links = job.links(scaled.context, name=NAME, urls={0: "https://s3/list"})
    objects.apply(cluster_id=scaled.cluster_id, manifests=[links, *manifests])
    wait_until(lambda: len(jobs_of(scaled)) == 1, scaled.keda_logs)

    kafka.send("requests", range(100))
    wait_until(lambda: len(jobs_of(scaled)) == 2, scaled.keda_logs)

    kafka.read_all("requests", queue.group)
    wait_until(lambda: observation.observe_queue(read(scaled), []).is_empty, scaled.keda_logs)

    objects.delete(
        cluster_id=scaled.cluster_id,
        api_version=scaled_job.API_VERSION,
        kind=scaled_job.KIND,
        namespace=scaled.context.namespace,
        name=NAME,
    )
    wait_until(lambda: jobs_of(scaled) == [], scaled.keda_logs)
    journey("KEDA: 3 messages of Kafka made 1 worker, 103 the 2 of its partitions, none no more")
