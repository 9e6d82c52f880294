"""Workers that drain a topic of a real Kafka: what one that dies leaves, rebalances, tries, and dead letters."""

from __future__ import annotations

import importlib
import io
import json
import secrets
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployments.batch.domain import worker_outbox, worker_store
from deployments.batch.domain.sources.kafka import topic
from deployments.batch.domain.sources.kafka.kind import KafkaKind
from deployments.batch.domain.sources.kafka.topic import KafkaSource
from deployments.batch.domain.worker_store import WorkerEnded
from tests.cluster.kafka import broker, jars
from tests.cluster.kafka.broker import USER, Broker
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.conftest import bench, in_one_thread
from tests.deployments.batch.kafka_bench import KafkaBench
from tests.deployments.batch.queue_bench import Triton, request_of, run_until_killed
from tests.deployments.world import cluster_calls, moving_clock, world
from tests.waiting import wait_for

__all__ = ["bench", "cluster_calls", "moving_clock", "world"]
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        found = jars.folder()
    except jars.Unavailable as error:
        pytest.skip(f"Kafka cannot run here: {error}")
    with broker.running(found, tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def kafka_bench(
    bench: Bench, kafka: Broker, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KafkaBench]:
    in_one_thread(settings, monkeypatch)
    env = {"SASL": "plaintext", "USERNAME": USER, "PASSWORD": kafka.password, "TLS": "disable"}
    for name, value in env.items():
        monkeypatch.setenv(f"SLIPWAY_KAFKA_{name}", value)
    # As short as the broker allows: what a dead worker had is another one's after it.
    monkeypatch.setattr(topic, "SESSION_MS", 6000)
    name = f"requests-{secrets.token_hex(4)}"
    client = {
        "bootstrap_servers": [kafka.address],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": kafka.password,
    }
    admin = importlib.import_module("kafka").KafkaAdminClient(**client)
    for topic_name, partitions in ((name, 2), (f"{name}-dead", 1)):
        admin.create_topics({topic_name: {"num_partitions": partitions, "replication_factor": 1}})
    admin.close()
    made = KafkaBench(bench, f"kafka://{kafka.address}/{name}", name, client)
    yield made
    for source in made.sources:
        _close(source)
    # Those of a client that is left open would go on in the tests after these.
    wait_for("end of Kafka's threads", lambda: not _threads_of_kafka())


def kill(consumer: Any) -> None:
    """For the group it is gone, with nothing committed. (By its silence alone that would take a session's time-out.)"""
    _close(consumer.source)


def _close(source: KafkaSource) -> None:
    if source.producer is not None:
        source.producer.close(timeout=0)
    source.consumer.close(autocommit=False)


def _threads_of_kafka() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "kafka" in thread.name.lower()]


EFFECTS = [
    (KafkaSource, "read"),
    (KafkaSource, "take"),
    (KafkaSource, "acknowledge"),
    (KafkaSource, "bury"),
    (KafkaSource, "send_dead"),
    (KafkaSource, "release"),
    (worker_outbox.Outbox, "create"),
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("owner", "effect"), EFFECTS, ids=[name for _, name in EFFECTS])
def test_a_worker_killed_at_any_effect_loses_no_message_and_answers_each_once(
    kafka_bench: KafkaBench,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    effect: str,
    moment: str,
) -> None:
    ids = kafka_bench.send(1, 2, 13, 4) + kafka_bench.send(5, 6, partition=1)
    job = kafka_bench.running()
    first = kafka_bench.consumer(Triton(refuses=frozenset({13})))
    assert run_until_killed(first, monkeypatch, owner, effect, moment)
    kill(first)
    kafka_bench.work(Triton(refuses=frozenset({13})))
    kafka_bench.bench.tick(job)

    values = [1, 2, 13, 4, 5, 6]
    expected = {name: [2 * n] for name, n in zip(ids, values, strict=True) if n != 13}
    assert kafka_bench.answered() == expected
    letters = {letter["slipway.id"]: letter for letter in kafka_bench.letters()}
    assert set(letters) == {ids[2]}
    assert letters[ids[2]]["slipway.reason"] == "the model refuses 13"
    assert letters[ids[2]]["body"] == request_of(13), "it can be sent again as it was"
    assert kafka_bench.lag() == 0


def test_a_worker_killed_after_its_last_acknowledgement_is_counted_without_another_message(
    kafka_bench: KafkaBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_bench.send(1, 2, 4)
    job = kafka_bench.running()
    worker = kafka_bench.consumer()
    assert run_until_killed(worker, monkeypatch, KafkaSource, "acknowledge", "after")
    kill(worker)

    kafka_bench.bench.tick(job)

    assert kafka_bench.lag() == 0
    assert job.done_rows == len(kafka_bench.answered()) == 3


def test_a_message_that_ends_triton_is_a_dead_letter_and_takes_no_other_along(
    kafka_bench: KafkaBench,
) -> None:
    ids = kafka_bench.send(*range(1, 41))
    job = kafka_bench.running(requests=16)
    for _ in range(10):
        consumer = kafka_bench.consumer(Triton(crashes_at=frozenset({17})))
        try:
            consumer.run()
            break
        except WorkerEnded:
            kill(consumer)
    kafka_bench.bench.tick(job)

    assert kafka_bench.answered() == {ids[n - 1]: [2 * n] for n in range(1, 41) if n != 17}
    (letter,) = kafka_bench.letters()
    assert letter["slipway.id"] == ids[16]
    assert letter["slipway.reason"] == "it was delivered 3 times and its worker ended each time"


def test_a_worker_that_is_reclaimed_commits_what_it_answered_and_the_rest_is_no_try(
    kafka_bench: KafkaBench,
) -> None:
    ids = kafka_bench.send(*range(1, 31))
    kafka_bench.running(requests=1)
    first = kafka_bench.consumer()

    class Reclaimed(Triton):
        def answer(self, number: int, line: bytes) -> dict[str, Any]:
            if len(self.asked) == 1:
                first.stopping.set()
            return super().answer(number, line)

    first.server = Reclaimed()
    first.run()
    assert first.server.asked == [1, 2], "what was sent is finished, and nothing new is sent"

    second = kafka_bench.consumer()
    messages = second.source.read(10, 20_000)
    assert [(m.id, m.deliveries) for m in messages] == [(name, 1) for name in ids[2:]]
    assert kafka_bench.lag() == 28


def test_two_workers_share_the_partitions_and_each_message_is_answered_once(
    kafka_bench: KafkaBench,
) -> None:
    ids = kafka_bench.send(*range(1, 11))
    kafka_bench.running()
    first = kafka_bench.consumer()
    with_pool(first)
    more = kafka_bench.send(*range(11, 16)) + kafka_bench.send(*range(16, 21), partition=1)
    second = kafka_bench.consumer()
    for _ in range(60):
        with_pool(first)
        with_pool(second)
        if kafka_bench.lag() == 0 and len(owned(second)) == 1:
            break

    assert [len(owned(worker)) for worker in (first, second)] == [1, 1]
    names = ids + more
    assert kafka_bench.answered() == {names[n - 1]: [2 * n] for n in range(1, 21)}


def owned(consumer: Any) -> Any:
    return consumer.source.consumer.assignment()


def with_pool(consumer: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        consumer.step(pool)


def test_without_a_topic_for_dead_letters_nothing_is_taken(kafka_bench: KafkaBench) -> None:
    kafka_bench.send(1)
    kafka_bench.running(dead_letters="elsewhere")

    with pytest.raises(WorkerEnded) as ended:
        kafka_bench.consumer()

    assert ended.value.code == worker_store.NEVER
    assert str(ended.value) == (
        "there is no topic elsewhere for dead letters: make it, or name another one"
    )
    assert kafka_bench.lag() == 1


def test_the_pod_imports_the_client_from_what_the_portal_put_into_the_store(
    kafka_bench: KafkaBench, tmp_path: Path
) -> None:
    kafka_bench.running()
    listed = worker_store.Store().get(kafka_bench.bench.link())[1]
    status, content = worker_store.Store().get(json.loads(listed)["library"])
    library = KafkaKind().library()
    assert library is not None
    assert (status, content) == (200, library.archive)

    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kafka; print(kafka.__file__)"
    )
    # -S: without the packages of this environment.
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{tmp_path}/kafka/__init__.py"

    outbox = kafka_bench.consumer().outbox
    with pytest.raises(WorkerEnded, match="is not what the job names"):
        outbox.load_library("0" * 64, tmp_path)
