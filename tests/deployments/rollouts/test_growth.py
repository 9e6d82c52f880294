"""The candidate has the replicas that its traffic needs: ready before the weight rises, never fewer."""

from __future__ import annotations

import pytest

from deployments.changes.services import requests
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, Rollout, RolloutEvent
from deployments.preflight.selectors import quotas
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict
from tests.deployments.canaries import send, view
from tests.deployments.guarded_rollouts import weights
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

STEPS = [
    {"weight": 5, "soak_seconds": 0, "min_requests": 20},
    {"weight": 50, "soak_seconds": 0, "min_requests": 20},
]
FOUR = {"min_replicas": 4, "max_replicas": 4}


def begin(world: World, *, plan: dict[str, object] | None = None, **spec: object) -> Rollout:
    return world.play(f"growth {plan} {spec}", lambda: _begin(world, plan, spec))


def _begin(world: World, plan: dict[str, object] | None, spec: dict[str, object]) -> Rollout:
    deployment = world.serving(**(spec or FOUR))
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={**AT_ONCE, **(plan or {})},
    )
    world.approved(change)
    world.reconcile_now(deployment)
    ready(world)
    return ready(world)


def ready(world: World) -> Rollout:
    world.cluster.make_ready("detector-r2")
    return go(world)


def go(world: World) -> Rollout:
    world.reconcile_now(Deployment.objects.get())
    return Rollout.objects.get()


def fill(world: World, failure: int = 0) -> Rollout:
    weight = Deployment.objects.get().candidate_weight
    world.clock.move(6)
    send(world, "detector-r1", 10 * (100 - weight))
    send(world, "detector-r2", 10 * weight - failure, failure=failure)
    return go(world)


def replicas(world: World, name: str = "detector-r2") -> tuple[int, int]:
    """Min and max as they were pushed to the cluster."""
    predictor = world.cluster.objects["InferenceService", "vision", name]["spec"]["predictor"]
    return predictor["minReplicas"], predictor["maxReplicas"]


def promote(world: World, rollout: Rollout) -> None:
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash)


def test_replicas_are_ready_before_the_weight_rises(world: World) -> None:
    rollout = begin(world)
    assert (replicas(world), replicas(world, "detector-r1")) == ((1, 1), (4, 4))
    assert weights(world)["detector-r2-predictor"] == 5

    promote(world, fill(world))
    rollout = go(world)

    assert replicas(world) == (4, 4)
    assert weights(world)["detector-r2-predictor"] == 5
    assert (rollout.phase, rollout.step_index, rollout.promoted_to) == ("running", 0, 1)
    shown = view(world, rollout)
    why = "promoted to 50%, once the candidate has 4 replicas ready"
    assert (shown.is_promotable, shown.promotable_reason) == (False, why)
    with pytest.raises(Conflict, match=why):
        promote(world, rollout)

    rollout = ready(world)

    assert weights(world)["detector-r2-predictor"] == 50
    assert (rollout.step_index, rollout.promoted_to) == (1, None)
    events = RolloutEvent.objects.order_by("id").values_list("message", flat=True)
    assert list(events)[-2:] == [
        "promoted 5 → 50%, once its replicas are ready",
        "the candidate has the replicas that it needs: 5 → 50%",
    ]
    assert [event.actor_name for event in AuditEvent.objects.filter(action="rollout.promoted")] == [
        "lead"
    ]


def test_what_was_approved_stays_counted_while_it_has_fewer(world: World) -> None:
    begin(world)
    deployment = Deployment.objects.get()

    assert deployment.candidate_replicas == 1
    assert deployment.candidate_revision is not None
    assert rendering.spec_of(deployment.candidate_revision).min_replicas == 4
    running = quotas.list_running(world.team)
    assert [revision.spec.most_gpus for revision in running] == [4, 4]


def test_it_is_judged_at_its_step_while_it_grows(world: World) -> None:
    begin(world)
    promote(world, fill(world))
    go(world)
    world.clock.move(200)

    rollout = fill(world, failure=40)

    assert rollout.phase == RolloutPhase.ABORTING, "pods that start are no reason, failures are"
    assert rollout.promoted_to is None
    assert rollout.events.get(kind="aborting").message.startswith("aborted: error ratio")
    assert weights(world) == {"detector-r1-predictor": 100}


def test_pods_that_do_not_start_in_time_abort_it_with_the_reason(world: World) -> None:
    begin(world)
    promote(world, fill(world))
    go(world)
    world.clock.move(1000)
    assert go(world).phase == RolloutPhase.RUNNING

    world.clock.move(801)
    rollout = go(world)

    assert rollout.phase == RolloutPhase.ABORTING
    assert rollout.events.get(kind="aborting").message.startswith(
        "aborted: not in time: promoted to 50%, once the candidate has 4 replicas ready ("
    )
    assert weights(world) == {"detector-r1-predictor": 100}


def test_a_pause_keeps_the_promotion_and_the_weight(world: World) -> None:
    rollout = begin(world)
    promote(world, fill(world))
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    go(world)

    rollout = ready(world)
    assert (rollout.phase, rollout.promoted_to) == ("paused", 1)
    assert weights(world)["detector-r2-predictor"] == 5
    actions.unpause(actor=world.member, rollout_id=rollout.pk)
    go(world)

    assert weights(world)["detector-r2-predictor"] == 50


def test_all_requests_wait_for_all_replicas(world: World) -> None:
    begin(world)
    rollout = fill(world)
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
    )
    rollout = go(world)
    assert (rollout.phase, rollout.promoted_to) == ("running", 2)
    assert weights(world)["detector-r2-predictor"] == 5

    ready(world)
    world.clock.move(16)
    rollout = go(world)

    assert rollout.phase in (RolloutPhase.PROMOTING, RolloutPhase.COMPLETED)
    assert weights(world) == {"detector-r2-predictor": 100}
    assert replicas(world) == (4, 4)
    assert Deployment.objects.get().candidate_replicas is None


def test_the_autoscaler_of_a_candidate_keeps_its_max(world: World) -> None:
    begin(world, min_replicas=2, max_replicas=4)

    assert replicas(world) == (1, 4)
    assert replicas(world, "detector-r1") == (2, 4)


def test_what_takes_over_at_once_is_of_full_size(world: World) -> None:
    deployment = world.serving(**FOUR)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=[],
        plan={**AT_ONCE, "kind": "blue-green"},
    )
    world.approved(change)
    world.reconcile_now(deployment)

    assert replicas(world) == (4, 4)
