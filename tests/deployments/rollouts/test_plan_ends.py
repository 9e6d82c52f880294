"""What a plan does at its end, and that all of it is approved."""

from __future__ import annotations

from deployments.changes.services import decisions, requests
from deployments.models import Alias, ChangeRequest, Deployment, Rollout, RolloutEvent
from deployments.registry.services import aliases
from deployments.rollouts.services import actions
from deployments.states import ChangeState, RolloutPhase
from tests.deployments.canaries import STEPS, soak, view
from tests.deployments.guarded_rollouts import begin
from tests.deployments.world import World


def finish(world: World, deployment: Deployment, rollout: Rollout) -> None:
    shown = view(world, rollout)
    actions.promote_fully(
        actor=world.lead2, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    for _ in range(3):
        soak(world, deployment, 16)
    assert Rollout.objects.get().phase == RolloutPhase.COMPLETED


def test_the_alias_follows_when_the_plan_says_so(world: World) -> None:
    aliases.move(
        actor=world.lead,
        team_slug="vision",
        model_name="detector",
        alias="champion",
        number=world.version1.number,
        is_protected=True,
    )
    deployment, rollout = begin(world, move_alias="champion")
    assert Alias.objects.get(name="champion").version == world.version1

    finish(world, deployment, rollout)

    assert Alias.objects.get(name="champion").version == world.version2
    assert RolloutEvent.objects.get(kind="alias").message == (
        "detector@champion now points to detector:2"
    )


def test_an_alias_that_may_not_be_moved_holds_up_nothing(world: World) -> None:
    deployment, rollout = begin(world, move_alias="champion")
    version = world.version2
    type(version).objects.filter(pk=version.pk).update(state="archived")

    finish(world, deployment, rollout)

    assert not Alias.objects.exists()
    assert RolloutEvent.objects.get(kind="alias").message.startswith(
        "detector@champion was not moved: "
    )
    assert ChangeRequest.objects.get(kind="canary").state == ChangeState.DONE


def test_a_plan_is_part_of_what_is_approved(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={"guards": [{"metric": "error_rate", "max": 0.02}]},
    )
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    ChangeRequest.objects.filter(pk=change.pk).update(plan={"kind": "canary", "guards": []})

    world.work()

    assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.SUBMITTED
    assert not Rollout.objects.exists()
