"""A canary on an API server: what its weights, its promotion and its abort make of the objects."""

from __future__ import annotations

from typing import Any

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world
from tests.contract.reported import (
    accept_route,
    make_pod_ready,
    make_ready,
    needs_administrator,
    node,
)
from tests.deployments.canaries import send, view
from tests.rollout_plans import AT_ONCE

__all__ = ["cluster_calls", "delivered", "moving_clock", "node", "world"]
pytestmark = needs_administrator
_STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 100}]


def _weights(delivered: Delivered, name: str) -> dict[str, int]:
    route = delivered.get("gateway.networking.k8s.io/v1", "HTTPRoute", name)
    (weights,) = {
        tuple((ref["name"], ref["weight"]) for ref in rule["backendRefs"])
        for rule in route["spec"]["rules"]
    }
    return dict(weights)


def _revisions(delivered: Delivered, name: str) -> dict[str, list[int]]:
    """For each kind that a revision has of its own, the revisions that are there."""
    return {
        kind: [
            number
            for number in (1, 2)
            if _stays(delivered.get(api_version, kind, f"{name}-r{number}"))
        ]
        for api_version, kind in (("apps/v1", "Deployment"), ("v1", "Service"))
    }


def _stays(live: Any) -> bool:
    return live is not None and "deletionTimestamp" not in live["metadata"]


def _started(delivered: Delivered, somebody: Kubectl, node: str, name: str) -> Deployment:
    """A deployment that serves, and whose candidate was approved and is ready."""
    deployment = delivered.deployed(name)
    make_ready(delivered, somebody, node, deployment)
    world = delivered.world
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=_STEPS,
        plan=AT_ONCE,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    assert _weights(delivered, name) == {f"{name}-r1": 100}, "before its pods are ready"
    make_pod_ready(delivered, somebody, node, f"{name}-r2")
    _follow(delivered, somebody, deployment)
    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    return deployment


def _follow(delivered: Delivered, somebody: Kubectl, deployment: Deployment) -> None:
    """The weights are written, and the gateway follows them."""
    delivered.world.reconcile_now(deployment)
    accept_route(delivered, somebody, deployment.name)
    delivered.world.reconcile_now(deployment)


def test_a_promoted_candidate_takes_all_requests_and_the_old_revision_is_removed(
    delivered: Delivered, somebody: Kubectl, node: str
) -> None:
    world = delivered.world
    deployment = _started(delivered, somebody, node, "walked")
    assert _weights(delivered, "walked") == {"walked-r1": 90, "walked-r2": 10}
    before = delivered.get("apps/v1", "Deployment", "walked-r1")
    world.clock.move(111)
    send(world, "walked-r1", 900)
    send(world, "walked-r2", 100)
    world.reconcile_now(deployment)
    rollout = Rollout.objects.get()
    shown = view(world, rollout)
    assert shown.is_promotable, shown.promotable_reason
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)

    _follow(delivered, somebody, deployment)

    assert _weights(delivered, "walked") == {"walked-r2": 100}
    assert _revisions(delivered, "walked") == {"Deployment": [1, 2], "Service": [1, 2]}
    draining = delivered.get("apps/v1", "Deployment", "walked-r1")
    assert draining["metadata"]["uid"] == before["metadata"]["uid"]
    assert draining["spec"] == before["spec"], "it drains as it was"
    for _ in range(2):
        world.clock.move(16)
        world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.COMPLETED, rollout.phase_reason
    _wait_for_revisions(delivered, "walked", [2])
    deployment.refresh_from_db()
    assert (deployment.state, deployment.stable_revision.number) == ("ready", 2)


def test_an_aborted_candidate_gets_no_request_and_is_removed(
    delivered: Delivered, somebody: Kubectl, node: str
) -> None:
    world = delivered.world
    deployment = _started(delivered, somebody, node, "sent-back")
    stable = delivered.get("apps/v1", "Deployment", "sent-back-r1")
    rollout = Rollout.objects.get()

    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="looks wrong")
    _follow(delivered, somebody, deployment)

    assert _weights(delivered, "sent-back") == {"sent-back-r1": 100}
    for _ in range(2):
        world.clock.move(16)
        world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert (rollout.phase, rollout.phase_reason) == (RolloutPhase.ABORTED, "aborted: looks wrong")
    _wait_for_revisions(delivered, "sent-back", [1])
    after = delivered.get("apps/v1", "Deployment", "sent-back-r1")
    assert after["metadata"]["generation"] == stable["metadata"]["generation"]


def _wait_for_revisions(delivered: Delivered, name: str, numbers: list[int]) -> None:
    """A server that deletes dependents first keeps an object for a moment."""
    expected = {"Deployment": numbers, "Service": numbers}
    wait_until(lambda: _revisions(delivered, name) == expected, lambda: _revisions(delivered, name))
