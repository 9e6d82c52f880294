"""A deployment is watched after its rollout: its baseline and its golden requests, every 15 minutes."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.health.selectors import health
from deployments.health.services import outcome, switch, watch
from deployments.models import Deployment, DeploymentHealth, HealthRecord, SyntheticHour
from portal.core.errors import Forbidden
from portal.notifications.models import Notice
from tests.deployments.golden_requests import begin, save, served
from tests.deployments.health.weeks import HOUR, check, record_week
from tests.deployments.refusals import refused
from tests.deployments.world import World


def watched(world: World, **week: Any) -> Deployment:
    """It served for eight days, and was just checked for the first time."""
    deployment = world.serving()
    record_week(world, deployment, **week)
    check(world, deployment)
    return deployment


def later(world: World, *, times: int = 1) -> None:
    """Checks that are 15 minutes apart. The first one only takes the deployment up."""
    for _ in range(times):
        world.clock.move(900)
        watch.sweep()


def alerts() -> list[str]:
    return [notice.message for notice in Notice.objects.filter(event="deployment.health")]


def history() -> list[tuple[str, str, str]]:
    return [(row.kind, row.verdict, row.message) for row in HealthRecord.objects.order_by("id")]


def test_twice_the_latency_is_reported_once_and_its_end_too(world: World) -> None:
    deployment = watched(world)
    assert check(world, deployment).baseline_message == ""
    for _ in range(2):
        check(world, deployment, latency_us=20_000)
    assert alerts() == []

    for _ in range(3):
        check(world, deployment, latency_us=20_000)

    left = "Mean latency 20 ms is above its 7-day baseline: 10 ms at this hour"
    assert alerts() == [f"{left}."]
    view = health.view_of(deployment)
    assert [(m.label, str(m.verdict), m.value_text, m.range_text) for m in view.metrics] == [
        ("Error ratio", "ok", "1%", "1%"),
        ("Mean latency", "failed", "20 ms", "10 ms"),
        ("Requests", "ok", "1 req/s", "1 req/s"),
        ("GPU use", "ok", "33%", "33%"),
    ]
    for _ in range(3):
        check(world, deployment)
    back = "Mean latency 10 ms is back within its 7-day baseline"
    assert history() == [("baseline", "failed", left), ("baseline", "ok", back)]
    assert len(alerts()) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factor": 2}, "Requests 2 req/s is above its 7-day baseline: 1 req/s at this hour"),
        ({"factor": 0.3}, "Requests 0.3 req/s is below its 7-day baseline: 1 req/s at this hour"),
        ({"failing": 0.1}, "Error ratio 10% is above its 7-day baseline: 1% at this hour"),
    ],
)
def test_each_metric_that_leaves_its_baseline_is_reported(
    world: World, change: dict[str, Any], message: str
) -> None:
    deployment = watched(world)

    for _ in range(3):
        check(world, deployment, **change)

    assert alerts() == [f"{message}."]


def test_fewer_errors_and_less_latency_are_no_alert(world: World) -> None:
    deployment = watched(world)

    for _ in range(4):
        check(world, deployment, failing=0, latency_us=2_000)

    assert alerts() == []


def test_less_than_a_week_is_not_judged(world: World) -> None:
    deployment = watched(world, days=5)

    for _ in range(4):
        row = check(world, deployment, latency_us=90_000)

    assert (alerts(), row.baseline_message) == ([], "needs 7 days of data (5 so far)")


def test_checks_with_a_gap_between_them_are_not_in_a_row(world: World) -> None:
    deployment = watched(world)

    for _ in range(3):
        check(world, deployment, seconds=3_600, latency_us=20_000)

    assert alerts() == []


def test_a_wrong_golden_answer_is_reported_once_until_it_is_right_again(world: World) -> None:
    save(world, "one", 1.0, 2.0)
    deployment, pods = served(world)
    later(world, times=2)
    assert history() == [("golden", "ok", "1 of 1 golden requests passed")]

    pods.answers[1] = lambda x: 3 * x
    later(world, times=3)

    failed = (
        "1 of 1 golden requests failed: one: "
        "y: element 1 of 1 is 3, expected 2: off by 1, allowed 0.0021"
    )
    assert alerts() == [f"{failed}."]
    # A pod that does not answer is neither right nor wrong.
    answer = pods.answers.pop(1)
    later(world)
    row = DeploymentHealth.objects.get()
    assert (row.golden_verdict, row.golden_message) == (
        "failed",
        "no response: pod detector-r1-0 cannot be reached",
    )
    pods.answers[1] = answer
    later(world)
    assert len(alerts()) == 1
    # Four that were answered before, and this one.
    assert sum(SyntheticHour.objects.values_list("requests", flat=True)) == 5
    assert deployment.synthetic_hours.count() >= 1


def test_a_rollout_sends_its_golden_requests_itself(world: World) -> None:
    save(world)
    deployment, pods = served(world, r2=lambda x: 2 * x)
    later(world)
    begin(world, deployment)
    before = len(pods.requests)

    later(world)

    assert len(pods.requests) == before
    assert DeploymentHealth.objects.get().checked_at == world.clock.at


def test_a_check_that_crashes_is_repeated_and_reports_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = watched(world)
    for _ in range(2):
        check(world, deployment, latency_us=20_000)
    record = outcome.record

    def crash(*args: Any) -> None:
        record(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(outcome, "record", crash)
    with pytest.raises(KeyboardInterrupt):
        check(world, deployment, latency_us=20_000)
    assert (alerts(), history()) == ([], [])
    monkeypatch.setattr(outcome, "record", record)

    check(world, deployment, seconds=60, latency_us=20_000)
    assert alerts() == []
    check(world, deployment, seconds=61, latency_us=20_000)
    watch.sweep()

    assert len(alerts()) == len(history()) == 1


def test_what_is_stopped_or_switched_off_is_not_checked(world: World) -> None:
    save(world)
    deployment, pods = served(world)
    later(world, times=2)
    sent = len(pods.requests)
    assert sent == 1

    for person in (world.member, world.lead):
        switch.switch(actor=person, deployment_id=deployment.pk, is_on=False)
    world.clock.move(3_600)
    assert watch.sweep() == 0
    switch.switch(actor=world.member, deployment_id=deployment.pk, is_on=True)
    Deployment.objects.update(is_stopped=True)
    assert watch.sweep() == 0
    Deployment.objects.update(is_stopped=False)
    assert watch.sweep() == 1

    assert len(pods.requests) == sent + 1


def test_a_viewer_cannot_switch_it(world: World) -> None:
    deployment = world.serving()

    with refused(world, Forbidden):
        switch.switch(actor=world.viewer, deployment_id=deployment.pk, is_on=False)

    assert not DeploymentHealth.objects.exists()


def test_old_lines_of_the_history_are_deleted(world: World) -> None:
    deployment = watched(world)
    HealthRecord.objects.create(
        deployment=deployment,
        at=world.clock.at - outcome.KEPT - HOUR,
        kind="baseline",
        verdict="ok",
        message="long ago",
        revision_number=1,
    )

    for _ in range(3):
        check(world, deployment, latency_us=20_000)

    assert [line[1] for line in history()] == ["failed"]


def test_a_thousand_deployments_cost_a_constant_number_of_queries_until_one_is_due(
    world: World, django_assert_max_num_queries: Any
) -> None:
    watched(world)

    with django_assert_max_num_queries(2):
        assert watch.sweep() == 0
