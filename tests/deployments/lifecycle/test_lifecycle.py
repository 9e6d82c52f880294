"""Stop, start, scale in place and roll back: what each does to the cluster, and who may."""

from __future__ import annotations

import pytest

from deployments.domain.states import ChangeState, DeploymentState, RolloutPhase
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.selectors import plans, quotas
from deployments.services import applying, changes, desired, stopping
from portal.accounts.models import Team
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound, QuotaExceeded
from tests.deployments.delivery import canaries
from tests.deployments.delivery.conftest import World
from tests.deployments.delivery.refusals import refused


def stopped(world: World, **changed: object) -> Deployment:
    deployment = world.serving(**changed)
    stopping.stop(actor=world.member, deployment_id=deployment.pk, reason="costs too much")
    return world.look(deployment)


def test_stopping_removes_route_and_workload_and_keeps_the_revision(world: World) -> None:
    deployment = world.serving()
    world.cluster.calls.clear()

    stopping.stop(actor=world.member, deployment_id=deployment.pk, reason="costs too much")
    world.look(deployment)

    assert deployment.state == DeploymentState.STOPPED
    assert world.cluster.names("InferenceService") == []
    assert world.cluster.names("HTTPRoute") == []
    assert next(call[1] for call in world.cluster.writes if call[0] == "delete") == "HTTPRoute"
    assert deployment.stable_revision.number == 1
    assert quotas.committed_gpus(world.team) == 0
    event = AuditEvent.objects.get(action="deployment.stopped")
    assert (event.actor_name, event.reason) == ("member", "costs too much")
    assert deployment.events.filter(kind="stopped", message="stopped: costs too much").exists()


def test_stopping_twice_changes_nothing_more(world: World) -> None:
    deployment = stopped(world)
    generation = deployment.desired_generation

    stopping.stop(actor=world.lead, deployment_id=deployment.pk)

    deployment.refresh_from_db()
    assert deployment.desired_generation == generation
    assert AuditEvent.objects.filter(action="deployment.stopped").count() == 1


@pytest.mark.parametrize(("who", "error"), [("viewer", Forbidden), ("stranger", NotFound)])
def test_who_may_not_stop(world: World, who: str, error: type[Exception]) -> None:
    deployment = world.serving()

    with refused(world, error):
        stopping.stop(actor=getattr(world, who), deployment_id=deployment.pk)


def test_what_serves_nothing_yet_is_withdrawn_not_stopped(world: World) -> None:
    change = changes.request_deploy(actor=world.member, draft=world.draft())

    with refused(world, Conflict, "not_serving"):
        stopping.stop(actor=world.member, deployment_id=change.deployment_id)


def test_stopping_withdraws_what_waits_for_approval(world: World) -> None:
    deployment = world.serving()
    waiting = changes.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )

    stopping.stop(actor=world.member, deployment_id=deployment.pk)

    waiting.refresh_from_db()
    assert waiting.state == ChangeState.WITHDRAWN


def test_stopping_aborts_the_rollout_and_both_end(world: World) -> None:
    deployment, rollout = canaries.start(world)

    stopping.stop(actor=world.member, deployment_id=deployment.pk)
    world.look(deployment)
    for _ in range(3):
        world.clock.move(30)
        world.look(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTED
    assert deployment.state == DeploymentState.STOPPED
    assert deployment.candidate_revision_id is None
    assert world.cluster.names("InferenceService") == []
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.FAILED


@pytest.mark.parametrize("kind", ["canary", "scale", "roll_back"])
def test_a_stopped_deployment_takes_no_change_but_start_and_retire(world: World, kind: str) -> None:
    deployment = stopped(world)
    asks = {
        "canary": lambda: changes.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=canaries.STEPS,
        ),
        "scale": lambda: changes.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
        ),
        "roll_back": lambda: changes.request_roll_back(
            actor=world.member, deployment_id=deployment.pk, revision_number=1
        ),
    }

    with refused(world, Conflict, "stopped"):
        asks[kind]()


def test_starting_again_is_approved_and_brings_back_the_same_revision(world: World) -> None:
    deployment = stopped(world)
    change = changes.request_start(actor=world.member, deployment_id=deployment.pk)
    assert world.look(deployment).state == DeploymentState.STOPPED

    world.approved(change)
    world.look(deployment)
    assert deployment.state == DeploymentState.PROGRESSING
    assert quotas.committed_gpus(world.team) == 1
    world.cluster.make_ready("detector-r1")
    world.look(deployment)

    change.refresh_from_db()
    assert (deployment.state, change.state) == (DeploymentState.READY, ChangeState.DONE)
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert deployment.revisions.count() == 1


def test_what_runs_cannot_be_started(world: World) -> None:
    deployment = world.serving()

    with refused(world, Conflict, "not_stopped"):
        changes.request_start(actor=world.member, deployment_id=deployment.pk)


def test_a_start_over_quota_is_refused(world: World) -> None:
    deployment = stopped(world)
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=0)

    with refused(world, QuotaExceeded):
        changes.request_start(actor=world.member, deployment_id=deployment.pk)


def test_a_start_that_never_comes_up_fails_at_its_deadline(world: World) -> None:
    deployment = stopped(world)
    change = changes.request_start(actor=world.member, deployment_id=deployment.pk)
    world.approved(change)

    world.clock.move(desired.PROGRESS_SECONDS + 1)
    world.look(deployment)

    change.refresh_from_db()
    assert change.state == ChangeState.FAILED


def test_a_stopped_deployment_can_be_retired(world: World) -> None:
    deployment = stopped(world)
    change = changes.request_retire(actor=world.member, deployment_id=deployment.pk)

    world.approved(change)
    world.look(deployment)

    assert deployment.is_retired


def test_scaling_changes_the_replicas_of_the_same_revision(world: World) -> None:
    deployment = world.serving()
    change = changes.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=4
    )
    assert change.revision_id == deployment.stable_revision_id
    assert "minReplicas: 2" in plans.yaml_of_change(change)

    world.approved(change)
    assert world.look(deployment).state == DeploymentState.PROGRESSING
    world.cluster.make_ready("detector-r1")
    world.look(deployment)

    change.refresh_from_db()
    predictor = world.cluster.objects["InferenceService", "vision", "detector-r1"]["spec"]
    assert (deployment.state, change.state) == (DeploymentState.READY, ChangeState.DONE)
    assert predictor["predictor"]["minReplicas"] == 2
    assert predictor["predictor"]["maxReplicas"] == 4
    assert deployment.revisions.count() == 1
    assert deployment.stable_revision.spec["max_replicas"] == 1
    assert quotas.committed_gpus(world.team) == 4
    assert not Rollout.objects.exists()


def test_scaling_counts_the_gpus_of_the_deployment_once(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=4)
    deployment = world.serving(max_replicas=2)

    change = changes.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=1, max_replicas=4
    )
    changes.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    assert quotas.committed_gpus(world.team) == 4
    world.work()
    assert quotas.committed_gpus(world.team) == 4


@pytest.mark.parametrize(
    ("least", "most", "field"),
    [(1, 1, "min_replicas"), (3, 2, "max_replicas"), (-1, 1, "min_replicas")],
)
def test_a_scale_that_cannot_be_is_refused(world: World, least: int, most: int, field: str) -> None:
    deployment = world.serving()

    with refused(world, Invalid) as raised:
        changes.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=least, max_replicas=most
        )

    assert field in raised[0].fields


def test_a_canary_after_scaling_starts_from_what_was_approved_last(world: World) -> None:
    deployment = world.serving()
    world.approved(
        changes.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
        )
    )
    world.cluster.make_ready("detector-r1")
    world.look(deployment)

    canary = changes.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=canaries.STEPS,
    )

    assert canary.revision.spec["min_replicas"] == 2


def test_scaling_up_is_not_called_degraded_while_the_old_replica_serves(world: World) -> None:
    deployment = world.serving()
    change = changes.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )
    changes.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    applying.sweep()

    world.look(deployment)

    assert deployment.state == DeploymentState.PROGRESSING
    assert "1 of 2" in deployment.state_reason
