"""A measurement belongs to the revision of which it was made, also when a later deployment has its name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.test import Client

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.guards.domain.counters import SideFacts
from deployments.guards.domain.limits import GuardLimit
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.rollouts.services import actions, gpu_facts
from deployments.sizing.selectors import measurements
from fleet.models import Pod, Workload, WorkloadHour
from fleet.telemetry.selectors import pressure
from portal.accounts.models import User
from tests.deployments import canaries
from tests.deployments.guarded_rollouts import begin
from tests.deployments.world import World
from tests.page import page


def measure(world: World, name: str, mib: int) -> None:
    """Its peak, an hour of 2,000 inferences at 10 ms, and a pod that took 40 s to be ready."""
    workload = Workload.objects.get(name=name)
    Workload.objects.filter(pk=workload.pk).update(gpu_memory_peak_mib=mib)
    at = world.clock.at
    WorkloadHour.objects.create(
        workload=workload,
        start=at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1),
        inference_count=2000,
        gpu_busy_ms=20_000,
    )
    Pod.objects.create(
        cluster_id=world.cluster_id,
        workload=workload,
        namespace="vision",
        name=f"{name}-{at:%H%M%S}",
        uid=f"{name}-{at:%H%M%S}",
        created_at=at,
        ready_at=at + timedelta(seconds=40),
    )


def peak_of(name: str) -> int | None:
    return Workload.objects.get(name=name).gpu_memory_peak_mib


def measured_mib(version: ModelVersion) -> tuple[str, int] | None:
    found = measurements.find_measurement(version)
    return (found.label, found.mib) if found else None


def shown_memory(client: Client, version: ModelVersion) -> str:
    return page(client.get(f"/vision/models/detector/{version.number}")).term("GPU memory")


def retired(world: World, mib: int | None = 9_000) -> Deployment:
    deployment = world.serving()
    if mib is not None:
        measure(world, "detector-r1", mib)
    world.clock.move(6 * 3600)
    world.approved(requests.request_retire(actor=world.member, deployment_id=deployment.pk))
    world.reconcile_now(deployment)
    assert deployment.is_retired
    world.clock.move(60)
    return deployment


def requested_again(world: World, version: ModelVersion, **changed: Any) -> ChangeRequest:
    draft = world.draft(**changed)
    return requests.request_deploy(
        actor=world.member,
        draft=type(draft)(version.pk, draft.cluster_id, draft.name, draft.spec),
    )


def served_again(world: World, version: ModelVersion, **changed: Any) -> Deployment:
    change = requested_again(world, version, **changed)
    world.approved(change)
    world.cluster.make_ready("detector-r1")
    return world.reconcile_now(deployment_of(change))


def test_a_deployment_made_again_under_a_retired_name_was_not_measured(world: World) -> None:
    retired(world)

    served_again(world, world.version2)

    assert peak_of("detector-r1") is None
    assert measured_mib(world.version1) == ("detector:1", 9_000), "which its deployment keeps"
    assert measured_mib(world.version2) == ("detector:1", 9_000), "as of an earlier version"
    assert pressure.memory([Workload.objects.get(name="detector-r1").pk]) == {}
    # What was counted by hour says when: it stays that of the first.
    assert measurements.gpu_us_per_inference(world.version1) == 10_000
    assert measurements.list_start_seconds(world.version1) == [40]
    measure(world, "detector-r1", 3_000)
    WorkloadHour.objects.filter(start__gte=world.clock.at).update(gpu_busy_ms=60_000)
    Pod.objects.filter(created_at=world.clock.at).update(
        ready_at=world.clock.at + timedelta(seconds=70)
    )
    assert measured_mib(world.version2) == ("detector:2", 3_000)
    assert measured_mib(world.version1) == ("detector:1", 9_000)
    assert measurements.gpu_us_per_inference(world.version1) == 10_000
    assert measurements.list_start_seconds(world.version1) == [40]
    assert measurements.list_start_seconds(world.version2) == [70, 40], "and of earlier versions"


def test_other_settings_under_the_same_name_were_not_measured_either(world: World) -> None:
    retired(world)

    served_again(world, world.version1, instances_per_gpu=4)

    assert peak_of("detector-r1") is None
    kept = measurements.find_measurement(world.version1)
    assert kept is not None
    assert (kept.mib, kept.instances) == (9_000, 1), "with the settings that it was measured with"


def test_the_page_of_its_version_still_says_what_a_retired_deployment_measured(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    """Who looks at version 1 after its deployment was replaced by one of the same name."""
    client = signed_in(world.viewer)
    before = shown_memory(client, world.version1)
    retired(world)
    served_again(world, world.version2)
    measure(world, "detector-r1", 3_072)

    assert "measured" not in before
    measured = "measured: up to {} on a GPU of its own"
    assert shown_memory(client, world.version1).endswith(measured.format("8.8 GiB"))
    assert shown_memory(client, world.version2).endswith(measured.format("3 GiB"))


def test_what_was_not_measured_is_not_kept(world: World) -> None:
    first = retired(world, mib=None)
    assert first.observed == {}

    served_again(world, world.version2)
    measure(world, "detector-r1", 3_000)

    assert measured_mib(world.version1) is None, "what version 2 needs says nothing of version 1"
    assert measured_mib(world.version2) == ("detector:2", 3_000)


def test_each_of_three_under_one_name_keeps_its_own(world: World) -> None:
    retired(world)
    second = served_again(world, world.version2)
    measure(world, "detector-r1", 3_000)
    world.clock.move(6 * 3600)
    world.approved(requests.request_retire(actor=world.member, deployment_id=second.pk))
    world.reconcile_now(second)
    world.clock.move(60)

    served_again(world, world.version2, instances_per_gpu=4)
    measure(world, "detector-r1", 5_000)

    assert measured_mib(world.version1) == ("detector:1", 9_000)
    assert measured_mib(world.version2) == ("detector:2", 5_000), "the highest of its own"
    assert second.observed == {"gpu_memory_peaks_mib": {"r1": 3_000}}


def test_until_the_successor_is_on_the_cluster_the_peak_is_that_of_the_first(world: World) -> None:
    retired(world)

    requested_again(world, world.version2)

    assert measured_mib(world.version1) == ("detector:1", 9_000)
    assert measured_mib(world.version2) == ("detector:1", 9_000), "as of an earlier version"


def test_a_stop_and_a_start_keep_it(world: World) -> None:
    deployment = world.serving(environment="staging")
    measure(world, "detector-r1", 9_000)
    stop.stop(actor=world.member, deployment_id=deployment.pk, reason="costs too much")
    world.reconcile_now(deployment)
    assert Workload.objects.get(name="detector-r1").retired_at is not None
    world.clock.move(3600)

    world.approved(requests.request_start(actor=world.member, deployment_id=deployment.pk))
    world.reconcile_now(deployment)

    assert Workload.objects.get(name="detector-r1").retired_at is None
    assert measured_mib(world.version1) == ("detector:1", 9_000)


def test_each_version_has_its_own_after_a_promotion_and_a_roll_back(world: World) -> None:
    deployment, rollout = canaries.start(world)
    measure(world, "detector-r1", 9_000)
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
    )
    for _ in range(4):
        world.clock.move(120)
        world.reconcile_now(deployment)
    assert deployment.stable_revision.number == 2
    assert (peak_of("detector-r1"), peak_of("detector-r2")) == (9_000, None)
    assert measured_mib(world.version2) == ("detector:1", 9_000), "until it is measured itself"
    measure(world, "detector-r2", 4_000)
    assert measured_mib(world.version2) == ("detector:2", 4_000)

    back = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=1
    )
    world.approved(back)
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    assert deployment.stable_revision.number == 1
    assert peak_of("detector-r1") == 9_000
    assert measured_mib(world.version1) == ("detector:1", 9_000)
    assert measured_mib(world.version2) == ("detector:2", 4_000)


def test_the_guard_reads_no_peak_of_a_retired_namesake(world: World) -> None:
    _, rollout = begin(world)
    limit = (GuardLimit(metric="gpu_memory", max=8.0),)
    made = rollout.candidate_revision.created_at
    row = Workload.objects.filter(name="detector-r2")
    row.update(gpu_memory_peak_mib=9_000, created_at=made - timedelta(days=1))

    assert gpu_facts.facts_of(rollout, rollout.candidate_revision, limit) == SideFacts()

    row.update(created_at=made)

    facts = gpu_facts.facts_of(rollout, rollout.candidate_revision, limit)
    assert facts == SideFacts(gpu_memory_gib=9_000 / 1024)
