"""Statistics of a language model, from readings of vLLM's metrics on its own port."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from fleet.models import Cluster, MetricSample, Workload, WorkloadHour
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from fleet.telemetry.domain.counters import LanguageStats
from fleet.telemetry.selectors import requests
from fleet.telemetry.services import poll
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod

pytestmark = pytest.mark.django_db
POD = "detector-r1-a"
PORT = 8080


def page(
    answers: int, *, running: int = 0, usage: float = 0.0, preempted: int = 0, slow: int = 0
) -> str:
    """Each answer: 20 prompt tokens, 11 tokens, 200 ms to the first and 30 ms between the others. Of the
    first tokens `slow` took more than half a second.
    """
    label = '{engine="0",model_name="chat"}'
    values = {
        "num_requests_running": running,
        "num_requests_waiting": 2,
        "kv_cache_usage_perc": usage,
        "num_preemptions_total": preempted,
        "prompt_tokens_total": answers * 20,
        "generation_tokens_total": answers * 11,
        "request_success_total": answers,
        "time_to_first_token_seconds_count": answers,
        "time_to_first_token_seconds_sum": answers * 0.2,
        "inter_token_latency_seconds_count": answers * 10,
        "inter_token_latency_seconds_sum": answers * 0.3,
        "e2e_request_latency_seconds_sum": answers * 0.5,
        "request_queue_time_seconds_sum": answers * 0.05,
        "request_inference_time_seconds_sum": answers * 0.45,
    }
    name = "time_to_first_token_seconds_bucket"
    buckets = {"0.1": 0, "0.5": answers - slow, "2.0": answers, "+Inf": answers}
    values |= {f'{name}{{engine="0",le="{le}"}}': count for le, count in buckets.items()}
    return "".join(
        f"vllm:{name}{'' if '{' in name else label} {value}\n" for name, value in values.items()
    )


@pytest.fixture(autouse=True)
def running(cluster: Cluster, detector: int) -> None:
    Workload.objects.filter(pk=detector).update(metrics_port=PORT)
    changes = ObservedChanges(
        nodes=[node("node-1", gpus=4)], pods=[pod(POD, scheduled=START - timedelta(hours=1))]
    )
    record.record(cluster_id=cluster.pk, changes=changes, at=START)


def poll_at(kube: FakeKube, second: float, text: str) -> None:
    kube.pages = {POD: text}
    with time_machine.travel(START + timedelta(seconds=second), tick=False):
        assert poll.poll() == 1


def test_tokens_and_their_times_are_those_of_the_period(kube: FakeKube, cluster: Cluster) -> None:
    poll_at(kube, 0, page(100, preempted=4))
    poll_at(kube, 20, page(104, running=3, usage=0.6, preempted=5))

    with time_machine.travel(START + timedelta(seconds=20), tick=False):
        stats = requests.stats(
            cluster_id=cluster.pk, namespace="vision", names=["detector-r1"], seconds=60
        )

    assert stats is not None
    assert (stats.success, stats.requests_per_second) == (4, 0.2)
    assert (stats.mean_latency_ms, stats.queue_ms) == (500.0, 50.0)
    assert (stats.pending_requests, stats.mean_batch_size) == (2, None)
    assert stats.busy_ratio == pytest.approx(4 * 0.45 / 20)
    assert stats.busy_source == "busy time of the language model server"
    assert stats.language == LanguageStats(
        prompt_tokens=80,
        generation_tokens=44,
        prompt_tokens_per_second=4.0,
        generation_tokens_per_second=2.2,
        time_to_first_token_ms=200.0,
        # The four answers of the period took between 0.1 and 0.5 s.
        time_to_first_token_p95_ms=480.0,
        inter_token_ms=30.0,
        kv_cache_usage=0.6,
        running_requests=3,
        preemptions=1,
    )


def test_the_percentile_is_that_of_the_period_and_survives_a_restart(
    kube: FakeKube, cluster: Cluster
) -> None:
    poll_at(kube, 0, page(100, slow=100))
    poll_at(kube, 20, page(110, slow=100))
    poll_at(kube, 40, page(10, slow=10))

    with time_machine.travel(START + timedelta(seconds=40), tick=False):
        stats = requests.stats(
            cluster_id=cluster.pk, namespace="vision", names=["detector-r1"], seconds=60
        )

    assert stats is not None
    assert stats.language is not None
    # Ten within 0.5 s, then ten of the restarted server above it: the 19th of 20 is the 9th of these ten.
    assert stats.language.time_to_first_token_p95_ms == pytest.approx(500 + 1500 * 0.9)


def test_the_port_of_the_workload_is_read(kube: FakeKube, cluster: Cluster) -> None:
    poll_at(kube, 0, page(1))

    assert kube.proxied == [("vision", POD, PORT, "metrics")]


def test_hours_keep_the_tokens(kube: FakeKube, cluster: Cluster) -> None:
    poll_at(kube, 0, page(100))
    poll_at(kube, 20, page(104))

    hour = WorkloadHour.objects.get()
    assert (hour.prompt_tokens, hour.generation_tokens, hour.gpu_busy_source) == (80, 44, "llm")


def test_a_restart_of_vllm_loses_no_tokens(kube: FakeKube, cluster: Cluster) -> None:
    for second, answers in ((0, 100), (10, 110), (20, 2)):
        poll_at(kube, second, page(answers))

    assert MetricSample.objects.count() == 3
    assert WorkloadHour.objects.get().generation_tokens == (10 + 2) * 11


def test_a_minute_has_the_time_to_its_first_tokens(kube: FakeKube, cluster: Cluster) -> None:
    poll_at(kube, 0, page(100))
    poll_at(kube, 30, page(106))

    with time_machine.travel(START + timedelta(minutes=2), tick=False):
        (point,) = requests.series(
            cluster_id=cluster.pk, namespace="vision", names=["detector-r1"], start=START
        )

    assert point.time_to_first_token_ms == 200.0
    assert point.generation_tokens_per_second == pytest.approx(66 / 60)
