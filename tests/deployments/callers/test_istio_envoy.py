"""Signed keys behind a Gateway of Istio, enforced by a real Envoy with the policies that the portal writes."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import jwt

from deployments.callers.domain import signed_keys
from deployments.callers.services import keys
from deployments.callers.services.issuing import SIGNING, NewKey
from deployments.changes.services import requests
from deployments.models import Deployment
from deployments.spec.domain.serving_spec import Network
from portal.core import clock, sealing
from tests.deployments.callers.gateway_scene import Gateway, gateway
from tests.deployments.callers.istio import ACCESS, TOKENS, keyed
from tests.deployments.callers.test_keys import make
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.localcluster.controllers.conftest import store
from tests.localcluster.controllers.test_api_keys import model
from tests.waiting import wait_for

__all__ = ["cluster_calls", "gateway", "model", "moving_clock", "store", "world"]
# What the task asks of a revocation.
_SECONDS = 5


def sent(made: NewKey) -> dict[str, str]:
    return {"x-api-key": made.plain}


def forged(made: NewKey, **changed: object) -> dict[str, str]:
    """A token of the same caller, signed by the portal's own key, with other claims."""
    signer = made.row.signing_key
    assert signer is not None
    pem = sealing.unseal(SIGNING, signer.sealed)
    claims = jwt.decode(made.plain.removeprefix("slc_"), options={"verify_signature": False})
    token = jwt.encode({**claims, **changed}, pem, "ES256", headers={"kid": signer.kid})
    return {"x-api-key": f"slc_{token}"}


def test_only_signed_keys_that_work_now_are_served_and_a_revoked_one_ends_within_seconds(
    world: World, gateway: Gateway
) -> None:
    deployment = keyed(world)
    first, second = make(world, deployment), make(world, deployment, "search")
    gateway.reconcile()
    wait_for("the key works", lambda: gateway.status(sent(first)) == 200)
    now = int(time.time())
    stranger = signed_keys.new_key_pair()
    signer = first.row.signing_key
    assert signer is not None
    other_signer = signed_keys.sign(
        private_pem=stranger.private_pem,
        kid=signer.kid,
        issuer=signer.issuer,
        client=first.row.client,
        audience="vision/detector",
        starts_at=clock.now(),
        ends_at=clock.now() + timedelta(days=1),
    )
    refused = {
        "no key": gateway.status(),
        "random text": gateway.status({"x-api-key": "slc_" + "x" * 43}),
        "expired": gateway.status(forged(first, exp=now - 120)),
        "signed by another": gateway.status({"x-api-key": other_signer}),
        "another issuer": gateway.status(forged(first, iss="https://other.example")),
        "never listed": gateway.status(forged(first, sub="billing.999999")),
        "its name alone": gateway.status({"slipway-caller": first.row.client}),
        "no key by gRPC": gateway.client.post(
            gateway.address + "/inference.GRPCInferenceService/ModelInfer",
            headers={"slipway-deployment": "vision/detector"},
        ).status_code,
    }
    answers = [
        gateway.get(headers)
        for headers in (sent(first), {"Authorization": f"Bearer {second.plain}"})
    ]

    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=first.row.pk)
    began = time.monotonic()
    gateway.reconcile()
    wait_for("the revoked key ends", lambda: gateway.status(sent(first)) == 403)
    took = time.monotonic() - began
    kept = gateway.status(sent(second))

    assert refused == {
        "no key": 403,
        "random text": 401,
        "expired": 401,
        "signed by another": 401,
        "another issuer": 401,
        "never listed": 403,
        "its name alone": 403,
        "no key by gRPC": 403,
    }
    assert [answer.status_code for answer in answers] == [200, 200]
    names = [answer.json()["slipway-caller"] for answer in answers]
    assert names == [first.row.client, second.row.client]
    heads = [json.dumps(answer.json()) for answer in answers]
    assert not any(made.plain[4:] in head for made in (first, second) for head in heads)
    assert took < _SECONDS
    assert kept == 200


def test_credentials_of_other_routes_of_the_gateway_pass_untouched(
    world: World, gateway: Gateway
) -> None:
    deployment = keyed(world)
    made = make(world, deployment)
    gateway.reconcile()
    wait_for("keys are checked", lambda: gateway.status() == 403)

    own = {"x-api-key": "not-ours", "Authorization": "Bearer opaque"}
    answer = gateway.client.get(gateway.address + "/vision/free/v2", headers=own)
    on_keyed = gateway.status({**own, **sent(made)})

    assert answer.status_code == 200
    assert answer.json()["x-api-key"] == "not-ours"
    assert answer.json()["authorization"] == "Bearer opaque"
    assert on_keyed == 200


def test_a_key_of_another_deployment_opens_nothing(world: World, gateway: Gateway) -> None:
    deployment = keyed(world)
    mine = make(world, deployment)
    foreign = make(world, _another(world), "search")
    gateway.reconcile()
    wait_for("the key works", lambda: gateway.status(sent(mine)) == 200)

    assert gateway.status(sent(foreign)) == 403


def _another(world: World) -> Deployment:
    draft = world.draft("other", network=Network(access="keys"))
    world.approved(requests.request_deploy(actor=world.member, draft=draft))
    world.cluster.make_ready("other-r1")
    return world.reconcile_now(Deployment.objects.get(name="other"))


def test_opened_again_the_address_serves_everyone_and_its_policy_is_gone(
    world: World, gateway: Gateway
) -> None:
    deployment = keyed(world)
    gateway.reconcile()
    wait_for("keys are checked", lambda: gateway.status() == 403)

    stable = deployment.stable_revision
    assert stable is not None
    stable.spec = {**stable.spec, "network": {**stable.spec["network"], "access": "open"}}
    type(stable).objects.filter(pk=stable.pk).update(spec=stable.spec)
    world.reconcile_now(Deployment.objects.get())
    gateway.reconcile()

    wait_for("everyone is served", lambda: gateway.status() == 200)
    assert ACCESS not in world.cluster.objects
    assert TOKENS in world.cluster.objects
