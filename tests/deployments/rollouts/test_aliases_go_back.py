"""Going back to an earlier revision moves back the aliases that going forward moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deployments.changes.selectors.deployment_descriptions import describe
from deployments.changes.services import decisions, emergency_override, requests
from deployments.models import Alias, ChangeRequest, Deployment, Rollout, RolloutEvent
from deployments.registry.services import aliases
from deployments.rollouts.services import actions
from deployments.serving.domain.alias_moves import AliasMove, combine
from deployments.states import RolloutPhase
from portal.audit.models import AuditEvent
from tests.deployments.guarded_rollouts import begin
from tests.deployments.rollouts.test_plan_ends import finish
from tests.deployments.world import World

Approve = Callable[[World, ChangeRequest], object]


def point(world: World, number: int, alias: str = "champion") -> None:
    aliases.move(
        actor=world.lead, team_slug="vision", model_name="detector", alias=alias, number=number
    )


def champion() -> int:
    return Alias.objects.get(name="champion").version.number


def promoted(world: World) -> Deployment:
    """r2 serves version 2, and `champion` names it."""
    return world.play("promoted with its alias", lambda: _promote(world))


def _promote(world: World) -> Deployment:
    point(world, 1)
    deployment, rollout = begin(world, move_alias="champion")
    finish(world, deployment, rollout)
    deployment.refresh_from_db()
    assert champion() == 2
    return deployment


def request_return(world: World, deployment: Deployment, number: int = 1) -> ChangeRequest:
    return requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=number
    )


def carry_out(world: World, deployment: Deployment, name: str = "detector-r1") -> None:
    world.work()
    world.reconcile_now(deployment)
    world.cluster.make_ready(name)
    for _ in range(4):
        world.reconcile_now(deployment)
        world.clock.move(61)
    world.reconcile_now(deployment)
    newest = Rollout.objects.order_by("-id").first()
    assert newest is not None
    assert newest.phase == RolloutPhase.COMPLETED, newest.phase_reason


def approve(world: World, change: ChangeRequest) -> object:
    return decisions.approve(
        actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )


def override(world: World, change: ChangeRequest) -> object:
    return emergency_override.approve(
        actor=world.lead,
        change_id=change.pk,
        evidence_hash=change.evidence_hash,
        reason="all answers are wrong",
    )


@pytest.mark.parametrize("decide", [approve, override])
def test_a_roll_back_moves_the_alias_back(world: World, decide: Approve) -> None:
    deployment = promoted(world)
    change = request_return(world, deployment)
    assert "detector@champion moves back from detector:2 to detector:1." in (
        describe(change).consequence
    ), "the approver sees it"
    decide(world, change)

    carry_out(world, deployment)

    assert champion() == 1
    line = RolloutEvent.objects.filter(kind="alias").order_by("-id").first()
    assert line is not None
    assert line.message == "detector@champion points to detector:1 again"
    moved = AuditEvent.objects.filter(action="alias.moved").order_by("-id").first()
    assert moved is not None
    assert (moved.before["version"], moved.after["version"]) == (2, 1)


def test_and_forward_again(world: World) -> None:
    deployment = promoted(world)
    approve(world, request_return(world, deployment))
    carry_out(world, deployment)
    deployment.refresh_from_db()

    approve(world, request_return(world, deployment, 2))
    carry_out(world, deployment, "detector-r2")

    assert champion() == 2


def test_an_alias_that_somebody_moved_stays_and_is_named(world: World) -> None:
    deployment = promoted(world)
    point(world, 1)
    point(world, 2)
    point(world, 1)
    change = request_return(world, deployment)
    assert describe(change).consequence.endswith(
        "detector@champion is not moved back: someone moved it to detector:1."
    )
    approve(world, change)

    carry_out(world, deployment)

    assert champion() == 1
    assert AuditEvent.objects.filter(action="alias.moved").count() == 5


def test_an_alias_that_is_moved_after_the_approval_asks_again(world: World) -> None:
    deployment = promoted(world)
    change = request_return(world, deployment)
    approve(world, change)
    point(world, 1)

    world.work()

    change.refresh_from_db()
    assert change.state == "submitted"


def test_an_alias_that_going_forward_made_names_what_serves(world: World) -> None:
    deployment, rollout = begin(world, move_alias="champion")
    finish(world, deployment, rollout)
    deployment.refresh_from_db()
    assert champion() == 2
    approve(world, request_return(world, deployment))

    carry_out(world, deployment)

    assert champion() == 1


def test_an_abort_after_promotion_leaves_the_alias_where_it_was(world: World) -> None:
    point(world, 1)
    deployment, rollout = begin(world, move_alias="champion", watch_seconds=600)
    from tests.deployments.canaries import soak, view

    actions.promote_fully(
        actor=world.lead2, rollout_id=rollout.pk, evidence_hash=view(world, rollout).evidence_hash
    )
    for _ in range(3):
        soak(world, deployment, 16)
    assert Rollout.objects.get().phase == RolloutPhase.WATCHING

    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="wrong answers")
    for _ in range(4):
        world.reconcile_now(deployment)
        world.clock.move(61)

    assert Rollout.objects.get().phase == RolloutPhase.ABORTED
    assert champion() == 1


MOVES = [
    ([(1, 2)], [(1, 2)]),
    ([(2, 3), (1, 2)], [(1, 3)]),
    ([(3, 1), (1, 3)], []),
    ([(None, 2)], [(None, 2)]),
    ([(2, 4), (3, 2), (2, 3), (1, 2)], [(1, 4)]),
]


@pytest.mark.parametrize(("newest_first", "one"), MOVES)
def test_moves_of_several_rollouts_are_one(
    newest_first: list[tuple[int | None, int]], one: list[tuple[int | None, int]]
) -> None:
    moves = [AliasMove(7, "champion", before, after) for before, after in newest_first]
    other = AliasMove(8, "champion", 1, 2)

    assert combine([*moves, other]) == [
        *(AliasMove(7, "champion", before, after) for before, after in one),
        other,
    ]
