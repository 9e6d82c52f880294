"""What an API server refuses is told with its reason, and postpones nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import ChangeRequest, Deployment, DeploymentEvent
from fleet.kube.domain import errors
from portal.core import clock
from tests.deployments.world import World

REFUSALS: list[errors.ClusterError] = [
    errors.NotAllowed(
        'httproutes "x" is forbidden: unable to create new content in namespace vision because it '
        "is being terminated"
    ),
    errors.NotAllowed("admission webhook gate.example denied the request: no routes on Fridays"),
    errors.ObjectInvalid("spec.rules: Too many: 17: must have at most 16 items"),
    errors.ObjectConflict('conflict with "argocd": .spec.rules'),
    errors.ObjectNotFound('namespaces "vision" not found'),
]
NAMES = [type(error).__name__ + error.message[:12] for error in REFUSALS]
ROUTE_OF_BAD = ("HTTPRoute", "bad")


def approve(world: World, name: str) -> ChangeRequest:
    draft = replace(world.draft(name, environment="development"))
    change = requests.request_deploy(actor=world.member, draft=draft)
    if change.state == "submitted":
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    return change


def two_ready_to_route(world: World) -> tuple[Deployment, Deployment]:
    """`bad` and `good`, whose pods are ready; their routes come next."""
    changes = [approve(world, name) for name in ("bad", "good")]
    apply_changes.sweep()
    bad, good = (deployment_of(change) for change in changes)
    return bad, good


def due(deployment: Deployment) -> float:
    deployment.refresh_from_db()
    assert deployment.next_check_at is not None
    return (deployment.next_check_at - clock.now()).total_seconds()


@pytest.mark.parametrize("error", REFUSALS, ids=NAMES)
def test_a_refused_route_is_told_with_its_reason_and_postpones_nobody(
    world: World, error: errors.ClusterError
) -> None:
    bad, good = two_ready_to_route(world)
    world.cluster.refuse_by_name[ROUTE_OF_BAD] = error

    world.work()

    bad.refresh_from_db()
    reason = f"the cluster rejected the route: {error.message}"
    assert bad.state_reason.startswith(reason)
    assert "does not answer" not in bad.state_reason
    assert ("HTTPRoute", "vision", "good") in world.cluster.objects
    assert due(good) <= 3
    assert due(bad) <= 10
    world.clock.move(10)
    world.cluster.make_ready("bad-r1")
    world.reconcile_now(bad)
    assert (bad.state, bad.state_reason) == ("degraded", reason)
    world.cluster.refuse_by_name.clear()
    world.clock.move(10)
    world.reconcile_now(bad)
    assert (bad.state, bad.state_reason) == ("ready", "")


@pytest.mark.parametrize("error", REFUSALS, ids=NAMES)
def test_a_refusal_alone_in_its_pass_postpones_nobody(
    world: World, error: errors.ClusterError
) -> None:
    bad, good = two_ready_to_route(world)
    world.cluster.refuse_by_name[ROUTE_OF_BAD] = error
    before = due(good)

    assert reconcile.reconcile(deployment_id=bad.pk), "the cluster answered"

    assert due(good) == before


def test_a_throttled_route_waits_alone(world: World) -> None:
    bad, good = two_ready_to_route(world)
    world.cluster.refuse_by_name[ROUTE_OF_BAD] = errors.Throttled(
        "too many routes this minute", retry_after_seconds=30
    )

    world.work()

    bad.refresh_from_db()
    assert bad.state_reason == (
        "The cluster throttles requests. Slipway tries again soon: too many routes this minute"
    )
    assert ("HTTPRoute", "vision", "good") in world.cluster.objects
    assert due(bad) >= 29
    assert due(good) <= 3


def test_an_abort_whose_route_is_refused_is_not_told_as_done(world: World) -> None:
    from tests.deployments.canaries import start

    deployment, rollout = start(world)
    refusal = errors.ObjectInvalid("spec.rules: Too many")
    world.cluster.refuse_by_name["HTTPRoute", "detector"] = refusal
    from deployments.rollouts.services import actions

    actions.abort(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)

    assert deployment.state == "degraded"
    assert deployment.state_reason == "the cluster rejected the route: spec.rules: Too many"
    assert deployment.observed_weight == 10
    rollout.refresh_from_db()
    assert rollout.phase == "aborting"
    assert ("InferenceService", "vision", "detector-r2") in world.cluster.objects
    lines = DeploymentEvent.objects.filter(message__contains="rejected the route")
    assert lines.count() == 1


# Within the deadline of a change.
@pytest.mark.parametrize("away", [20, 600, 1500])
def test_everything_arrives_within_ten_seconds_of_the_return(world: World, away: int) -> None:
    two_ready_to_route(world)
    world.cluster.fail_with = errors.Unreachable("connection refused")
    # Any wait that grows from try to try has grown after sixty.
    seconds = max(5, away // 60)
    for _ in range(away // seconds):
        reconcile.sweep()
        world.clock.move(seconds)
    assert world.cluster.writes == []

    world.cluster.fail_with = None
    for _ in range(5):
        world.clock.move(2)
        world.work(rounds=1)

    kinds = {(kind, name) for kind, _, name in world.cluster.objects}
    assert {("InferenceService", "bad-r1"), ("InferenceService", "good-r1")} <= kinds
    assert {("HTTPRoute", "bad"), ("HTTPRoute", "good")} <= kinds


def test_a_role_that_is_missing_in_one_namespace_holds_up_no_other(world: World) -> None:
    bad, _ = two_ready_to_route(world)
    Deployment.objects.filter(pk=bad.pk).update(namespace="forbidden")
    listed = world.cluster.list_all

    def list_all(kind: object, *, namespace: str | None = None, **options: Any) -> object:
        if namespace in (None, "forbidden"):
            raise errors.NotAllowed("pods is forbidden in namespace forbidden")
        return listed(kind, namespace=namespace, **options)

    world.cluster.list_all = list_all  # type: ignore[method-assign,assignment]

    world.work()

    bad.refresh_from_db()
    assert bad.state_reason.startswith("The cluster does not permit it: pods is forbidden")
    assert ("HTTPRoute", "vision", "good") in world.cluster.objects
