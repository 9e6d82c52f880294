"""Targets are counted from the telemetry that the portal keeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deployments.models import Deployment, ServiceTarget, TargetCount
from deployments.states import TargetMetric
from deployments.targets.domain.burn import RequestSums, TargetState
from deployments.targets.selectors import minutes, targets
from deployments.targets.services import count
from fleet.models import WorkloadMinute
from tests.deployments.signed_in import start_canary
from tests.deployments.targets.traffic import counted, pod_of, record, sample, set_target
from tests.deployments.world import World

DAY = 1440


@pytest.fixture
def deployment(world: World) -> Deployment:
    return world.play("serving at half past", lambda: _serving_at_half_past(world))


def _serving_at_half_past(world: World) -> Deployment:
    world.clock.at = world.clock.at.replace(minute=30, second=30, microsecond=0)
    return world.serving()


def rows() -> list[dict[str, Any]]:
    return [dict(row) for row in TargetCount.objects.order_by("seconds", "start").values()]


def test_the_first_count_has_the_minutes_that_telemetry_kept(
    world: World, deployment: Deployment
) -> None:
    record(world, deployment, range(10 * DAY), good=999, bad=1)
    set_target(world, deployment)

    view = counted(world, deployment)

    assert view.evaluation.sums == RequestSums(1000 * 10 * DAY, 10 * DAY, 10 * DAY)
    assert view.evaluation.budget_left == pytest.approx(0)
    assert view.evaluation.known_share == pytest.approx(1 / 3)
    assert [(r.long_rate, r.short_rate) for r in view.evaluation.rules] == [
        (pytest.approx(1), pytest.approx(1)),
        (pytest.approx(1), pytest.approx(1)),
    ]
    # Minutes of seven hours and of the half one that runs; older ones by the hour only.
    assert TargetCount.objects.filter(seconds=60).count() == 7 * 60 + 31


def test_the_window_is_that_of_the_target(world: World, deployment: Deployment) -> None:
    record(world, deployment, range(8 * DAY, 9 * DAY), good=0, bad=100)
    record(world, deployment, range(DAY))
    set_target(world, deployment, days=7)

    assert counted(world, deployment).evaluation.budget_left == pytest.approx(1)
    set_target(world, deployment, days=14)
    (longer,) = targets.list_of(deployment)
    assert longer.evaluation.sums == RequestSums(2 * 100 * DAY, 100 * DAY, 2 * DAY)


def test_counting_again_changes_nothing(world: World, deployment: Deployment) -> None:
    record(world, deployment, range(200), good=90, bad=10)
    set_target(world, deployment)
    counted(world, deployment)
    first = rows()

    counted(world, deployment)

    kept = [{**row, "id": 0} for row in rows()]
    assert kept == [{**row, "id": 0} for row in first]


def test_minutes_that_change_after_they_were_counted_are_replaced(
    world: World, deployment: Deployment
) -> None:
    record(world, deployment, range(10))
    set_target(world, deployment)
    counted(world, deployment)
    world.clock.move(60)
    record(world, deployment, [0, 1], good=40, bad=60)

    assert counted(world, deployment).evaluation.sums == RequestSums(900 + 200, 120, 11)


def test_a_gap_is_neither_good_nor_bad(world: World, deployment: Deployment) -> None:
    record(world, deployment, range(31, 60), good=100, bad=0)
    set_target(world, deployment)

    view = counted(world, deployment)

    assert view.evaluation.sums == RequestSums(2900, 0, 29)
    assert [(r.long_rate, r.short_rate, r.fires) for r in view.evaluation.rules] == [
        (None, None, None),
        (None, None, None),
    ]
    assert view.evaluation.state == TargetState.NOT_KNOWN
    assert view.evaluation.is_burning is None


def test_requests_of_a_reading_after_a_gap_are_left_out(
    world: World, deployment: Deployment
) -> None:
    record(world, deployment, range(10))
    WorkloadMinute.objects.filter(start__gte=world.clock.at - timedelta(minutes=1)).update(
        observed_ms=0, request_failure=50
    )
    set_target(world, deployment)

    assert counted(world, deployment).evaluation.sums == RequestSums(900, 0, 9)


def test_an_outage_of_the_worker_loses_nothing(world: World, deployment: Deployment) -> None:
    set_target(world, deployment)
    record(world, deployment, range(600))
    counted(world, deployment)
    world.clock.move(20 * 3600)
    record(world, deployment, range(20 * 60))

    view = counted(world, deployment)

    assert view.evaluation.sums == RequestSums(100 * 1800, 0, 1800)


def test_two_revisions_are_one_deployment(world: World) -> None:
    deployment, _ = start_canary(world)
    record(world, deployment, range(60), good=90, bad=0)
    record(world, deployment, range(60), good=5, bad=5, revision=2)
    set_target(world, deployment)

    assert counted(world, deployment).evaluation.sums == RequestSums(6000, 300, 60)


def test_ten_percent_of_errors_burn_within_minutes(world: World, deployment: Deployment) -> None:
    record(world, deployment, range(15, 600))
    record(world, deployment, range(15), good=90, bad=10)
    set_target(world, deployment)

    view = counted(world, deployment)

    fast, slow = view.evaluation.rules
    assert (fast.long_rate, fast.short_rate) == (pytest.approx(25), pytest.approx(100))
    assert (fast.fires, slow.fires) == (True, False)
    assert view.evaluation.state == TargetState.BURNING


def test_first_tokens_are_counted_by_their_histogram(world: World, deployment: Deployment) -> None:
    pod = pod_of(world, deployment)
    for number in range(11):
        times = [[0.1, 5 * number], [0.25, 8 * number], [None, 10 * number]]
        at = world.clock.at - timedelta(minutes=10 - number)
        sample(pod, at, requests=10 * number, first_token_times=times)
    set_target(world, deployment, TargetMetric.FIRST_TOKEN, objective="99", ms=300)

    # 300 ms lies between two bounds: the lower one counts.
    assert counted(world, deployment).evaluation.sums == RequestSums(100, 20, 10)
    set_target(world, deployment, TargetMetric.FIRST_TOKEN, objective="99", ms=100)
    assert counted(world, deployment).evaluation.sums == RequestSums(100, 50, 10)
    set_target(world, deployment, TargetMetric.FIRST_TOKEN, objective="99", ms=99)
    assert counted(world, deployment).evaluation.sums == RequestSums(100, 100, 10)


def test_a_slow_reading_counts_its_requests_as_bad(world: World, deployment: Deployment) -> None:
    pod = pod_of(world, deployment)
    for number, p95_us in enumerate([None, 40_000, 50_000, 50_001, None, 10_000]):
        at = world.clock.at - timedelta(minutes=5 - number)
        sample(pod, at, requests=100 * number, request_p95_us=p95_us)
    set_target(world, deployment, TargetMetric.P95, objective="95", ms=50)

    # The minute without a summary is not known.
    assert counted(world, deployment).evaluation.sums == RequestSums(400, 100, 4)


def test_a_changed_limit_stops_a_count_that_is_running(
    world: World, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = pod_of(world, deployment)
    for number in range(3):
        at = world.clock.at - timedelta(minutes=2 - number)
        sample(pod, at, requests=100 * number, request_p95_us=50_000)
    set_target(world, deployment, TargetMetric.P95, objective="95", ms=40)
    real = minutes.read_minutes

    def change_meanwhile(*given: Any, **more: Any) -> Any:
        made = real(*given, **more)
        set_target(world, deployment, TargetMetric.P95, objective="95", ms=60)
        return made

    monkeypatch.setattr(minutes, "read_minutes", change_meanwhile)
    count.sweep()

    assert not TargetCount.objects.exists()
    assert ServiceTarget.objects.get().counted_until is None
    monkeypatch.setattr(minutes, "read_minutes", real)
    assert counted(world, deployment).evaluation.sums == RequestSums(200, 0, 2)


def test_a_worker_that_dies_while_it_writes_leaves_nothing_half(
    world: World, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(world, deployment, range(10))
    set_target(world, deployment)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(count, "_forget", die)
        with pytest.raises(KeyboardInterrupt):
            count.sweep()

    assert not TargetCount.objects.exists()
    # Its lease ends first.
    assert count.sweep() == 0
    world.clock.move(121)
    assert count.sweep() == 1
    assert TargetCount.objects.filter(seconds=60).count() == 10


def test_many_targets_take_no_more_queries(
    world: World, deployment: Deployment, django_assert_max_num_queries: Any
) -> None:
    set_target(world, deployment)
    record(world, deployment, range(30))
    counted(world, deployment)
    world.clock.move(61)

    with django_assert_max_num_queries(20):
        assert count.sweep() == 1


def test_a_retired_deployment_is_not_counted(world: World, deployment: Deployment) -> None:
    set_target(world, deployment)
    Deployment.objects.update(is_retired=True)

    assert count.sweep() == 0
