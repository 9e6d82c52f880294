"""Stop, start, scale in place and roll back: what each does to the cluster, and who may."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.selectors import evidence
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import apply_changes, stop
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.preflight.selectors import quotas
from deployments.serving.services import desired_state
from deployments.states import ChangeState, DeploymentState, RolloutPhase
from portal.accounts.models import Team
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, QuotaExceeded
from tests.deployments import canaries
from tests.deployments.refusals import refused
from tests.deployments.world import World


def stopped(world: World, **changed: Any) -> Deployment:
    return world.play(f"stopped {changed}", lambda: _stop(world, changed))


def _stop(world: World, changed: dict[str, Any]) -> Deployment:
    deployment = world.serving(**{"environment": "staging", **changed})
    stop.stop(actor=world.member, deployment_id=deployment.pk, reason="costs too much")
    return world.reconcile_now(deployment)


def committed_gpus(world: World) -> int:
    return quotas.committed_gpus(world.team, quotas.list_running(world.team))


def test_stopping_removes_route_and_workload_and_keeps_the_revision(world: World) -> None:
    deployment = world.serving(environment="staging")
    world.cluster.calls.clear()

    stop.stop(actor=world.member, deployment_id=deployment.pk, reason="costs too much")
    world.reconcile_now(deployment)

    assert deployment.state == DeploymentState.STOPPED
    assert world.cluster.names("InferenceService") == []
    assert world.cluster.names("HTTPRoute") == []
    assert next(call[1] for call in world.cluster.writes if call[0] == "delete") == "HTTPRoute"
    assert deployment.stable_revision.number == 1
    assert committed_gpus(world) == 0
    event = AuditEvent.objects.get(action="deployment.stopped")
    assert (event.actor_name, event.reason) == ("member", "costs too much")
    assert deployment.events.filter(kind="stopped", message="stopped: costs too much").exists()


def test_stopping_twice_changes_nothing_more(world: World) -> None:
    deployment = stopped(world)
    generation = deployment.desired_generation

    stop.stop(actor=world.lead, deployment_id=deployment.pk)

    deployment.refresh_from_db()
    assert deployment.desired_generation == generation
    assert AuditEvent.objects.filter(action="deployment.stopped").count() == 1


@pytest.mark.parametrize(("who", "error"), [("viewer", Forbidden), ("stranger", NotFound)])
def test_who_may_not_stop(world: World, who: str, error: type[DomainError]) -> None:
    deployment = world.serving(environment="staging")

    with refused(world, error):
        stop.stop(actor=getattr(world, who), deployment_id=deployment.pk)


def test_what_serves_nothing_yet_is_withdrawn_not_stopped(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    with refused(world, Conflict, "not_serving"):
        stop.stop(actor=world.member, deployment_id=deployment_of(change).pk)


def test_stopping_withdraws_what_waits_for_approval(world: World) -> None:
    deployment = world.serving(environment="staging")
    waiting = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )

    stop.stop(actor=world.member, deployment_id=deployment.pk)

    waiting.refresh_from_db()
    assert waiting.state == ChangeState.WITHDRAWN


def test_stopping_aborts_the_rollout_and_both_end(world: World) -> None:
    deployment, rollout = canaries.start(world, environment="staging")

    stop.stop(actor=world.member, deployment_id=deployment.pk)
    world.reconcile_now(deployment)
    for _ in range(3):
        world.clock.move(30)
        world.reconcile_now(deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTED
    assert deployment.state == DeploymentState.STOPPED
    assert deployment.candidate_revision_id is None
    assert world.cluster.names("InferenceService") == []
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.FAILED


@pytest.mark.parametrize("kind", ["canary", "scale", "roll_back"])
def test_a_stopped_deployment_takes_no_change_but_start_and_retire(world: World, kind: str) -> None:
    deployment = stopped(world)
    calls = {
        "canary": lambda: requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=canaries.STEPS,
        ),
        "scale": lambda: requests.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
        ),
        "roll_back": lambda: requests.request_roll_back(
            actor=world.member, deployment_id=deployment.pk, revision_number=1
        ),
    }

    with refused(world, Conflict, "stopped"):
        calls[kind]()


def test_starting_again_is_approved_and_brings_back_the_same_revision(world: World) -> None:
    deployment = stopped(world)
    change = requests.request_start(actor=world.member, deployment_id=deployment.pk)
    assert world.reconcile_now(deployment).state == DeploymentState.STOPPED

    world.approved(change)
    world.reconcile_now(deployment)
    assert deployment.state == DeploymentState.PROGRESSING
    assert committed_gpus(world) == 1
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    change.refresh_from_db()
    assert (deployment.state, change.state) == (DeploymentState.READY, ChangeState.DONE)
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert deployment.revisions.count() == 1


def test_what_runs_cannot_be_started(world: World) -> None:
    deployment = world.serving()

    with refused(world, Conflict, "not_stopped"):
        requests.request_start(actor=world.member, deployment_id=deployment.pk)


def test_a_start_over_quota_is_refused(world: World) -> None:
    deployment = stopped(world)
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=0)

    with refused(world, QuotaExceeded):
        requests.request_start(actor=world.member, deployment_id=deployment.pk)


def test_a_start_that_never_comes_up_fails_at_its_deadline(world: World) -> None:
    deployment = stopped(world)
    change = requests.request_start(actor=world.member, deployment_id=deployment.pk)
    world.approved(change)

    world.clock.move(desired_state.PROGRESS_SECONDS + 1)
    world.reconcile_now(deployment)

    change.refresh_from_db()
    assert change.state == ChangeState.FAILED


def test_a_stopped_deployment_can_be_retired(world: World) -> None:
    deployment = stopped(world)
    change = requests.request_retire(actor=world.member, deployment_id=deployment.pk)

    world.approved(change)
    world.reconcile_now(deployment)

    assert deployment.is_retired


def test_scaling_changes_the_replicas_of_the_same_revision(world: World) -> None:
    deployment = world.serving(max_replicas=2)
    change = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=4
    )
    assert change.revision_id == deployment.stable_revision_id
    assert "minReplicas: 2" in evidence.review(change).rendered.to_yaml()

    world.approved(change)
    assert world.reconcile_now(deployment).state == DeploymentState.PROGRESSING
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    change.refresh_from_db()
    predictor = world.cluster.objects["InferenceService", "vision", "detector-r1"]["spec"]
    assert (deployment.state, change.state) == (DeploymentState.READY, ChangeState.DONE)
    assert predictor["predictor"]["minReplicas"] == 2
    assert predictor["predictor"]["maxReplicas"] == 4
    assert deployment.revisions.count() == 1
    assert deployment.stable_revision.spec["max_replicas"] == 2
    assert committed_gpus(world) == 4
    assert not Rollout.objects.exists()


def test_scaling_counts_the_gpus_of_the_deployment_once(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=4)
    deployment = world.serving(max_replicas=2)

    change = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=1, max_replicas=4
    )
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    assert committed_gpus(world) == 4
    world.work()
    assert committed_gpus(world) == 4


@pytest.mark.parametrize(
    ("least", "most", "field"),
    [(1, 1, "min_replicas"), (3, 2, "max_replicas"), (-1, 1, "min_replicas")],
)
def test_a_scale_that_cannot_be_is_refused(world: World, least: int, most: int, field: str) -> None:
    deployment = world.serving()

    with refused(world, Invalid) as raised:
        requests.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=least, max_replicas=most
        )

    assert field in raised[0].fields


def test_a_canary_after_scaling_starts_from_what_was_approved_last(world: World) -> None:
    deployment = world.serving()
    world.approved(
        requests.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
        )
    )
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    canary = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=canaries.STEPS,
    )

    assert canary.revision.spec["min_replicas"] == 2


def test_scaling_up_is_not_called_degraded_while_the_old_replica_serves(world: World) -> None:
    deployment = world.serving()
    change = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    apply_changes.sweep()

    world.reconcile_now(deployment)

    assert deployment.state == DeploymentState.PROGRESSING
    assert "1 of 2" in deployment.state_reason
