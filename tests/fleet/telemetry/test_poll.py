from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from fleet.costs.domain.results import GroupBy
from fleet.costs.selectors import usage
from fleet.kube.domain.errors import Unreachable
from fleet.models import Cluster, MetricSample, Node, Pod, Workload, WorkloadHour, WorkloadMinute
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from fleet.tasks import poll_workloads
from fleet.telemetry.domain.counters import ServingStats
from fleet.telemetry.selectors import blocks
from fleet.telemetry.selectors import requests as selected
from fleet.telemetry.selectors.request_counts import RequestCounts
from fleet.telemetry.services import poll, rollups
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("detector")]
PODS = ("detector-r1-a", "detector-r1-b")


def page(success: int, *, failure: int = 0, compute_us: int = 0, model: str = "detector") -> str:
    labels = f'{{model="{model}",version="1"}}'
    values = {
        "request_success": success,
        "request_failure": failure,
        "count": success,
        "exec_count": success,
        "request_duration_us": success * 20_000,
        "queue_duration_us": success * 1_000,
        "compute_infer_duration_us": compute_us,
    }
    return "".join(f"nv_inference_{name}{labels} {value}\n" for name, value in values.items())


@pytest.fixture(autouse=True)
def running(cluster: Cluster, detector: int) -> None:
    nodes = [node("node-1", gpus=4)]
    pods = [pod(name, scheduled=START - timedelta(hours=1)) for name in PODS]
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(nodes=nodes, pods=pods), at=START)


def poll_at(kube: FakeKube, second: float, pages: dict[str, str | Unreachable]) -> int:
    kube.pages = dict(pages)
    with time_machine.travel(START + timedelta(seconds=second), tick=False):
        return poll.poll()


def stats_at(cluster: Cluster, second: float, seconds: int = 60) -> object:
    with time_machine.travel(START + timedelta(seconds=second), tick=False):
        return selected.stats(
            cluster_id=cluster.pk, namespace="vision", names=["detector-r1"], seconds=seconds
        )


def counts(cluster: Cluster, since: datetime) -> RequestCounts:
    return selected.counts_since(
        cluster_id=cluster.pk, namespace="vision", name="detector-r1", since=since
    )


def test_counts_are_the_sum_over_pods_since_the_moment(kube: FakeKube, cluster: Cluster) -> None:
    for second, first, second_pod in ((0, 100, 50), (10, 130, 60), (20, 150, 90)):
        poll_at(kube, second, {PODS[0]: page(first), PODS[1]: page(second_pod, failure=2)})

    summed = counts(cluster, START + timedelta(seconds=5))

    assert (summed.success, summed.failure, summed.observed_ms) == (90, 0, 40_000)
    assert summed.latest_at == START + timedelta(seconds=20)


def test_restarted_server_loses_no_requests(kube: FakeKube, cluster: Cluster) -> None:
    for second, value in ((0, 100), (10, 120), (20, 5), (30, 9)):
        poll_at(kube, second, {PODS[0]: page(value)})

    assert counts(cluster, START).success == 20 + 5 + 4


def test_pod_that_does_not_answer_leaves_the_others(kube: FakeKube, cluster: Cluster) -> None:
    pages: dict[str, str | Unreachable] = {PODS[0]: Unreachable("gone"), PODS[1]: page(10)}

    assert poll_at(kube, 0, pages) == 1
    assert MetricSample.objects.get().pod.name == PODS[1]


def test_nothing_read_is_not_known(kube: FakeKube, cluster: Cluster) -> None:
    assert poll_at(kube, 0, {}) == 0
    assert stats_at(cluster, 0) is None
    assert counts(cluster, START) == RequestCounts(0, 0, 0, 0, None)


def test_stats_of_a_minute(kube: FakeKube, cluster: Cluster) -> None:
    poll_at(kube, 0, {PODS[0]: page(0), PODS[1]: page(100)})
    poll_at(kube, 30, {PODS[0]: page(60, compute_us=3_000_000), PODS[1]: page(190, failure=10)})

    stats = stats_at(cluster, 30)

    assert isinstance(stats, ServingStats)
    assert stats.requests_per_second == pytest.approx(60 / 30 + 100 / 30)
    assert stats.error_ratio == pytest.approx(10 / 160)
    assert (stats.mean_latency_ms, stats.queue_ms) == (20.0, 1.0)
    assert stats.busy_ratio == pytest.approx(3 / 60)
    assert stats.busy_source == "Triton busy time"
    assert stats.p95_ms is None
    assert stats.pods == 2


def test_every_model_of_one_triton_is_counted(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    Workload.objects.filter(pk=detector).update(triton_models=["detector", "classifier"])
    poll_at(kube, 0, {PODS[0]: page(0) + page(0, model="classifier")})
    both = page(31, compute_us=6_000_000) + page(31, compute_us=9_000_000, model="classifier")
    poll_at(kube, 30, {PODS[0]: both + page(1000, model="stranger")})

    stats = stats_at(cluster, 30)
    used = usage.by_group(start=START, end=START + timedelta(hours=1), group_by=GroupBy.DEPLOYMENT)

    assert isinstance(stats, ServingStats)
    assert (stats.success, stats.inferences, stats.busy_ratio) == (62, 62, 0.5)
    assert counts(cluster, START).success == 62
    assert [(one.inferences, one.utilisation) for one in used.values()] == [(62, 0.5)]


def test_minute_without_requests_has_a_rate_of_zero_and_no_latency(
    kube: FakeKube, cluster: Cluster
) -> None:
    poll_at(kube, 0, {PODS[0]: page(7)})
    poll_at(kube, 30, {PODS[0]: page(7)})

    stats = stats_at(cluster, 30)

    assert isinstance(stats, ServingStats)
    assert (stats.requests_per_second, stats.error_ratio, stats.mean_latency_ms) == (0, None, None)


def test_rolling_up_again_gives_the_same_rows(kube: FakeKube, detector: int) -> None:
    for second in range(0, 130, 10):
        poll_at(kube, second, {PODS[0]: page(second)})
    at = START + timedelta(seconds=130)
    before = (
        list(WorkloadMinute.objects.order_by("start").values()),
        list(WorkloadHour.objects.values()),
    )

    rollups.roll_up(workload_ids=[detector], at=at)

    after = (
        list(WorkloadMinute.objects.order_by("start").values()),
        list(WorkloadHour.objects.values()),
    )
    assert [row["request_success"] for row in after[0]] == [50, 60, 10]
    assert [row["request_success"] for row in after[1]] == [120]
    strip = lambda rows: [{k: v for k, v in row.items() if k != "id"} for row in rows]  # noqa: E731
    assert (strip(before[0]), strip(before[1])) == (strip(after[0]), strip(after[1]))


def test_thinning_keeps_every_sum_exact_across_a_restart(kube: FakeKube, cluster: Cluster) -> None:
    values = [10, 20, 30, 2, 8, 15, 16]
    for index, value in enumerate(values):
        poll_at(kube, index * 10, {PODS[0]: page(value)})
    before = counts(cluster, START)

    # The last hour stays whole: blocks of a rollout's tests are chosen from it.
    assert rollups.thin(at=START + timedelta(minutes=60)) == 0
    gone = rollups.thin(at=START + timedelta(minutes=70))

    assert gone == 3
    assert counts(cluster, START).success == before.success == 20 + 2 + 14


def test_slots_are_the_increases_of_each_pod(kube: FakeKube, cluster: Cluster) -> None:
    for second, value in ((0, 10), (7, 40), (9, 50), (17, 90)):
        poll_at(kube, second, {PODS[0]: page(value), PODS[1]: page(100)})

    series = blocks.slots(
        cluster_id=cluster.pk,
        namespace="vision",
        name="detector-r1",
        since=START + timedelta(seconds=1),
        until=START + timedelta(seconds=21),
        seconds=5,
    )

    # From the first slot with an increase: seconds 6 to 11, 11 to 16, 16 to 21.
    assert [[slot.request_success for slot in of_pod] for of_pod in series] == [
        [40, 0, 40],
        [0, 0, 0],
    ]


def test_series_has_no_point_for_an_unobserved_minute(kube: FakeKube, cluster: Cluster) -> None:
    for second in (0, 30, 200, 230):
        poll_at(kube, second, {PODS[0]: page(second)})

    with time_machine.travel(START + timedelta(minutes=10), tick=False):
        points = selected.series(
            cluster_id=cluster.pk, namespace="vision", names=["detector-r1"], start=START
        )

    assert [point.at.minute for point in points] == [0, 3]


def with_memory(*gibibytes: int) -> str:
    lines = [
        f'nv_gpu_memory_used_bytes{{gpu_uuid="GPU-{index}"}} {amount * 2**30}\n'
        for index, amount in enumerate(gibibytes)
    ]
    return page(1) + "".join(lines)


def test_the_most_memory_that_one_gpu_held_is_kept(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    Workload.objects.update(created_at=START)

    poll_at(kube, 0, {PODS[0]: with_memory(2, 3), PODS[1]: with_memory(1)})
    poll_at(kube, 10, {PODS[0]: with_memory(1), PODS[1]: page(2)})

    assert Workload.objects.get(pk=detector).gpu_memory_peak_mib == 3072


def test_a_pod_of_the_revision_that_had_the_name_before_is_not_measured(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    made = Pod.objects.order_by("created_at").values_list("created_at", flat=True)[0]
    Workload.objects.update(created_at=made + timedelta(minutes=2))

    poll_at(kube, 0, {PODS[0]: with_memory(3), PODS[1]: with_memory(3)})

    assert Workload.objects.get(pk=detector).gpu_memory_peak_mib is None
    assert MetricSample.objects.count() == 2, "its requests still count"


def test_memory_of_a_gpu_that_others_use_too_is_not_taken_for_its_own(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    Node.objects.update(labels={"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4"})

    poll_at(kube, 0, {PODS[0]: with_memory(2)})

    assert Workload.objects.get(pk=detector).gpu_memory_peak_mib is None


def test_an_immediate_reading_covers_only_the_requested_workloads(
    kube: FakeKube,
    cluster: Cluster,
    django_capture_on_commit_callbacks: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube.pages = {name: page(5) for name in PODS}
    monkeypatch.setattr(poll_workloads, "apply_async", lambda args, **_: poll_workloads(*args))

    for names, readings in ((["other-r1"], 0), (["other-r1", "detector-r1"], 2)):
        with django_capture_on_commit_callbacks(execute=True) as sent:
            poll.poll_soon(cluster_id=cluster.pk, namespace="vision", names=names)
        assert len(sent) == bool(readings)
        assert MetricSample.objects.count() == readings


def minutes() -> list[int]:
    return list(WorkloadMinute.objects.order_by("start").values_list("request_success", flat=True))


def test_a_reading_that_is_written_after_a_later_one_counts_in_its_minute(kube: FakeKube) -> None:
    for second, value in ((0, 10), (50, 60), (65, 90), (58, 80), (70, 95)):
        poll_at(kube, second, {PODS[0]: page(value)})

    assert minutes() == [70, 15]


def test_a_clock_that_is_set_back_counts_no_request_twice(kube: FakeKube) -> None:
    """Readings of 30 s and 45 s are later ones than that of 60 s: the clock was set back by a minute."""
    for second, value in ((0, 10), (60, 60), (30, 70), (45, 80), (75, 100)):
        poll_at(kube, second, {PODS[0]: page(value)})

    assert minutes() == [70, 20]


def test_a_roll_up_that_failed_is_made_up_for_by_the_next(
    kube: FakeKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("the worker died")

    poll_at(kube, 0, {PODS[0]: page(10)})
    for second, value in ((50, 60), (65, 90)):
        with monkeypatch.context() as patched:
            patched.setattr(rollups, "roll_up", fail)
            with pytest.raises(RuntimeError):
                poll_at(kube, second, {PODS[0]: page(value)})
    poll_at(kube, 125, {PODS[0]: page(100)})

    assert minutes() == [50, 30, 10]


def test_a_page_of_nonsense_leaves_the_other_pods(kube: FakeKube) -> None:
    nonsense = page(7).replace(" 7\n", " NaN\n")

    assert poll_at(kube, 0, {PODS[0]: nonsense, PODS[1]: page(10)}) == 1
    assert [sample.pod.name for sample in MetricSample.objects.all()] == [PODS[1]]
