"""A policy of callers that the cluster refuses holds back no route, and is told."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.callers.services import keys, limits
from deployments.callers.services.issuing import KeyLimits
from deployments.changes.services import requests
from deployments.delivery.services import caller_keys
from deployments.models import CallerKey, Deployment, Rollout
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from fleet.kube.domain.errors import (
    ClusterError,
    NotAllowed,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    Throttled,
    Unreachable,
)
from portal.core.errors import Invalid
from tests.deployments.callers.test_keys import at_gateway, keyed, make
from tests.deployments.callers.test_page_and_rest import signed_in
from tests.deployments.canaries import soak
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page
from tests.rollout_plans import AT_ONCE

__all__ = ["cluster_calls", "moving_clock", "world"]
_STABLE = {"detector-r1-predictor": 100}
_HALF = {"detector-r1-predictor": 50, "detector-r2-predictor": 50}
_TAB = "/vision/deployments/detector/callers"
_LIMITS = ("BackendTrafficPolicy", "vision", "detector")
_ROUTE = ("HTTPRoute", "vision", "detector")
_ERRORS: tuple[ClusterError, ...] = (
    ObjectInvalid("spec.rateLimit.local.rules: Too many: 17: must have at most 16 items"),
    NotAllowed("backendtrafficpolicies is forbidden"),
    ObjectConflict("another field manager owns it"),
    ObjectNotFound("the server could not find the requested resource"),
    Throttled("too many requests", retry_after_seconds=1),
    Unreachable("the webhook did not answer"),
)


def canary(world: World) -> tuple[Deployment, Rollout]:
    """Half of the traffic of an address with keys goes to the candidate."""
    return world.play("keyed canary", lambda: _canary(world))


def _canary(world: World) -> tuple[Deployment, Rollout]:
    deployment = keyed(world)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=[{"weight": 50, "soak_seconds": 0, "min_requests": 0}],
        plan=AT_ONCE,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert world.cluster.weights("vision", "detector") == _HALF
    return deployment, Rollout.objects.get()


@pytest.mark.parametrize("kind", ["BackendTrafficPolicy", "SecurityPolicy", "Secret"])
@pytest.mark.parametrize("error", _ERRORS, ids=lambda error: type(error).__name__)
def test_an_abort_reaches_the_route_although_a_policy_is_refused(
    world: World, kind: str, error: ClusterError
) -> None:
    deployment, rollout = canary(world)
    key = make(world, deployment, requests_per_minute=60)
    world.cluster.refuse[kind] = error
    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=key.row.pk)
    make(world, deployment, "search", requests_per_minute=7)

    actions.abort(actor=world.lead, rollout_id=rollout.pk)
    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == _STABLE
    assert error.message in Deployment.objects.get().state_reason
    soak(world, deployment, 700)
    world.reconcile_now(deployment)
    assert Rollout.objects.get().phase == RolloutPhase.ABORTED

    world.cluster.refuse.clear()
    world.clock.move(16)
    world.work()
    assert list(at_gateway(world)) == [f"search.{CallerKey.objects.get(ended_at=None).pk}"]
    assert world.cluster.objects[_LIMITS]["spec"]["rateLimit"]["local"]["rules"][0]["limit"] == {
        "requests": 7,
        "unit": "Minute",
    }
    row = Deployment.objects.get()
    assert row.keys_at_gateway.problem == ""
    assert row.keys_at_gateway.written_generation == row.caller_keys_generation
    annotations = world.cluster.objects[_ROUTE]["metadata"]["annotations"]
    assert annotations == {"slipway.dev/caller-keys": str(row.caller_keys_generation)}


def test_an_abort_is_not_reported_done_while_the_route_is_refused(world: World) -> None:
    deployment, rollout = canary(world)
    world.cluster.refuse["HTTPRoute"] = ObjectInvalid("spec.rules: Too many: 17")

    actions.abort(actor=world.lead, rollout_id=rollout.pk)
    for _ in range(10):
        soak(world, deployment, 360)
        world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == _HALF
    row = Rollout.objects.get()
    assert row.phase == RolloutPhase.ABORTING
    assert row.phase_reason == "not confirmed: the route was last seen to send 50% to the candidate"

    world.cluster.refuse.clear()
    for _ in range(4):
        soak(world, deployment, 120)
        world.reconcile_now(deployment)
    assert world.cluster.weights("vision", "detector") == _STABLE
    assert Rollout.objects.get().phase == RolloutPhase.ABORTED


def test_a_route_that_would_be_open_waits_for_its_policy(world: World) -> None:
    world.cluster.refuse["SecurityPolicy"] = NotAllowed("securitypolicies is forbidden")
    world.cluster.refuse["BackendTrafficPolicy"] = NotAllowed("forbidden")

    keyed(world)
    refused = _ROUTE in world.cluster.objects
    world.cluster.refuse.clear()
    world.clock.move(120)
    world.work()

    assert not refused
    assert _ROUTE in world.cluster.objects


def test_the_tab_and_rest_say_what_was_refused_and_how_old_the_gateway_s_keys_are(
    world: World,
) -> None:
    deployment = keyed(world)
    made = make(world, deployment, requests_per_minute=60)
    client = APIClient()
    client.force_authenticate(world.member)
    address = f"/api/v1/deployments/{deployment.pk}/callers"
    before, written = client.get(address).json()[0], page(signed_in(world.member).get(_TAB)).text
    world.cluster.refuse["BackendTrafficPolicy"] = _ERRORS[0]

    world.clock.move(60)
    limits.set_limits(
        actor=world.lead,
        deployment_id=deployment.pk,
        key_id=made.row.pk,
        limits=KeyLimits(requests_per_minute=5),
    )
    waiting = client.get(address).json()[0]
    world.work()
    refused, shown = client.get(address).json()[0], page(signed_in(world.member).get(_TAB)).text

    assert (before["is_at_gateway"], before["gateway_problem"]) == (True, "")
    assert "at the gateway since" in written
    assert waiting["is_at_gateway"] is False
    assert waiting["gateway_written_at"] == before["gateway_written_at"]
    assert (refused["is_at_gateway"], refused["gateway_problem"]) == (False, _ERRORS[0].message)
    assert f"The cluster reports: {_ERRORS[0].message}" in shown
    assert "not at the gateway yet" in shown


def distinct(count: int) -> list[dict[str, Any]]:
    return [{"requests_per_minute": 10 + number} for number in range(count)]


def test_the_17th_limit_of_its_own_is_refused_with_the_reason_and_nothing_is_made(
    world: World,
) -> None:
    deployment = keyed(world)
    for number, limit in enumerate(distinct(16)):
        make(world, deployment, f"caller-{number}", **limit)
    client = APIClient()
    client.force_authenticate(world.lead)
    address = f"/api/v1/deployments/{deployment.pk}/callers"
    body = {"caller": "late", "contact": "ana", "requests_per_minute": 500}

    with pytest.raises(Invalid, match="takes 16 rules") as refusal:
        make(world, deployment, "late", requests_per_minute=500)
    by_rest = client.post(address, body, format="json")
    by_page = signed_in(world.lead).post(
        _TAB,
        {
            "name": "late",
            "kind": "service",
            "contact": "ana",
            "days": 9,
            "requests_per_minute": 500,
        },
    )
    shares = client.post(address, body | {"requests_per_minute": 12}, format="json")
    free = client.post(address, {"caller": "free", "contact": "ana"}, format="json")
    changed = client.post(
        f"{address}/{free.json()['id']}/limit", {"requests_per_minute": 501}, format="json"
    )
    world.work()

    assert refusal.value.code == "too_many_limits"
    assert (by_rest.status_code, by_rest.json()["code"]) == (422, "too_many_limits")
    assert by_page.status_code == 422
    assert "takes 16 rules" in by_page.content.decode()
    assert (shares.status_code, free.status_code, changed.status_code) == (201, 201, 422)
    assert CallerKey.objects.filter(requests_per_minute__gte=500).count() == 0
    rules = world.cluster.objects[_LIMITS]["spec"]["rateLimit"]["local"]["rules"]
    assert len(rules) == 16
    assert {
        header["type"] for rule in rules for header in rule["clientSelectors"][0]["headers"]
    } == {
        "Distinct",
        "RegularExpression",
    }


def test_thirty_callers_with_one_limit_rotate_without_a_refusal(world: World) -> None:
    deployment = keyed(world)
    made = [
        keys.create(
            actor=world.lead,
            deployment_id=deployment.pk,
            draft=keys.KeyDraft(
                name=f"caller-{number}", contact="ana", limits=KeyLimits(requests_per_minute=60)
            ),
        )
        for number in range(30)
    ]
    for one in made:
        keys.rotate(actor=world.lead, deployment_id=deployment.pk, key_id=one.row.pk)
    world.work()

    rules = world.cluster.objects[_LIMITS]["spec"]["rateLimit"]["local"]["rules"]
    assert len(rules) == 1
    assert len(at_gateway(world)) == 60


def test_a_revoked_key_is_gone_from_the_gateway_while_another_worker_holds_the_lease(
    world: World,
) -> None:
    """Its pass may take long; the change does not wait for it."""
    deployment = keyed(world)
    made = make(world, deployment)
    kept = make(world, deployment, "search")
    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=made.row.pk)
    before = at_gateway(world)

    caller_keys.push_at_once(deployment_id=deployment.pk)

    assert len(before) == 2
    assert at_gateway(world) == {f"search.{kept.row.pk}": kept.plain}
    row = Deployment.objects.get()
    assert row.keys_at_gateway.written_at == world.clock.at


def test_a_cluster_that_does_not_answer_costs_the_change_nothing(world: World) -> None:
    deployment = keyed(world)
    made = make(world, deployment)
    world.cluster.fail_with = Unreachable("timed out")

    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=made.row.pk)
    caller_keys.push_at_once(deployment_id=deployment.pk)

    assert CallerKey.objects.get().is_revoked
    assert Deployment.objects.get().keys_at_gateway.problem == ""
