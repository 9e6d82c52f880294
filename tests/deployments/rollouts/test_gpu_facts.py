"""GPU memory as a guard reads it: of this revision on this cluster."""

from __future__ import annotations

from deployments.guards.domain.counters import NO_FACTS, SideFacts
from deployments.guards.domain.limits import GuardLimit
from deployments.models import Rollout
from deployments.rollouts.services import gpu_facts
from fleet.models import Cluster, Workload
from tests.deployments.guarded_rollouts import begin
from tests.deployments.world import World

LIMIT = GuardLimit(metric="gpu_memory", max=8.0)


def facts(rollout: Rollout, *limits: GuardLimit) -> SideFacts:
    return gpu_facts.facts_of(rollout, rollout.candidate_revision, limits)


def test_a_namesake_on_another_cluster_says_nothing_of_this_one(world: World) -> None:
    _, rollout = begin(world)
    mine = Workload.objects.get(name="detector-r2")
    Workload.objects.filter(pk=mine.pk).update(gpu_memory_peak_mib=4096)
    Workload.objects.create(
        cluster=Cluster.objects.create(name="other", kind="eks", created_at=world.clock.at),
        team=mine.team,
        namespace=mine.namespace,
        name=mine.name,
        created_at=world.clock.at,
        gpu_memory_peak_mib=20_480,
    )

    assert facts(rollout, LIMIT) == SideFacts(gpu_memory_gib=4.0)
    assert facts(rollout) == NO_FACTS

    Workload.objects.filter(pk=mine.pk).update(gpu_memory_peak_mib=None)

    assert facts(rollout, LIMIT) == SideFacts(gpu_memory_gib=None), "not measured here"
