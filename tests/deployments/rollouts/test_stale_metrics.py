"""Readings that stop, requests that stop, servers that restart: a notification, never a verdict."""

from __future__ import annotations

from deployments.models import Deployment, Rollout
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.rollouts.web import outcome
from fleet.models import MetricSample, Pod
from portal.notifications.models import Notice
from tests.deployments.canaries import send, soak, start, view
from tests.deployments.world import World


def fill(world: World, deployment: Deployment) -> None:
    """Everything that the first step requires."""
    world.clock.move(111)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(deployment)


def test_readings_that_stop_are_reported_once_and_void_verdicts(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)

    for _ in range(4):
        soak(world, deployment, 40)

    shown = view(world, rollout)
    assert {guard.verdict for guard in shown.guards} == {"not enough data", "not known"}
    assert (shown.rollout.phase, shown.is_promotable) == ("running", False)
    alarm = outcome.alarm_of(shown)
    assert alarm.startswith("No metrics from the candidate since ")
    assert Notice.objects.filter(event="rollout.alarm").count() == 1

    send(world, "detector-r1", 90)
    send(world, "detector-r2", 10)
    world.reconcile_now(deployment)

    assert outcome.alarm_of(view(world, rollout)) == ""


def test_a_model_without_requests_raises_an_alarm_and_moves_nothing(world: World) -> None:
    deployment, rollout = start(world)
    fill(world, deployment)
    for _ in range(30):
        world.clock.move(5)
        send(world, "detector-r1", 0)
        send(world, "detector-r2", 0)
        world.reconcile_now(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == "running"
    message = StepObservation.from_json(rollout.observed).stale_metrics
    assert message.startswith("no requests reach either revision since ")
    notice = Notice.objects.get(event="rollout.alarm")
    assert notice.message == message
    shown = outcome.alarm_of(view(world, rollout))
    assert shown.endswith("Slipway neither promotes nor aborts on them.")


def test_a_server_that_was_restarted_counts_from_zero_and_loses_nothing(world: World) -> None:
    """Triton's counters begin anew: neither negative, nor a failure, nor all of it again."""
    deployment, rollout = start(world)
    fill(world, deployment)
    before = view(world, rollout).candidate_requests
    pod = Pod.objects.get(name="detector-r2")
    world.clock.move(5)
    MetricSample.objects.create(
        pod=pod, at=world.clock.at, request_success=7, request_duration_us=7 * 4000
    )
    send(world, "detector-r1", 63)

    world.reconcile_now(deployment)

    shown = view(world, rollout)
    assert shown.candidate_requests == before + 7
    assert {guard.verdict for guard in shown.guards} == {"pass", "not known"}
    assert Rollout.objects.get().phase == "running"
