"""Workloads of a rollout are read directly at each poll, also where the cluster has a Prometheus, until it is over."""

from __future__ import annotations

from deployments.models import Rollout
from deployments.rollouts.selectors import open_workloads
from deployments.states import RolloutPhase
from fleet.telemetry.selectors.current import WorkloadKey
from fleet.telemetry.services import prompt_readings
from tests.deployments.canaries import start
from tests.deployments.world import World


def test_both_sides_of_a_rollout_until_it_is_over(world: World) -> None:
    _, rollout = start(world)
    both = {WorkloadKey(world.cluster_id, "vision", f"detector-r{number}") for number in (1, 2)}

    assert prompt_readings.list_workloads([world.cluster_id]) == both
    assert prompt_readings.list_workloads([world.cluster_id + 1]) == frozenset()
    for phase in RolloutPhase:
        Rollout.objects.filter(pk=rollout.pk).update(phase=phase)
        is_over = phase in (RolloutPhase.COMPLETED, RolloutPhase.ABORTED)
        assert set(open_workloads.list_open_workloads([world.cluster_id])) == (
            set() if is_over else both
        ), phase
