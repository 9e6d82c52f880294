"""A real Envoy with the policies that the portal writes serves listed callers with valid tokens, and nobody else."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from deployments.callers.services import keys
from fleet.telemetry.domain.caller_metrics import Counter
from portal.audit.models import AuditEvent
from tests.deployments.callers.gateway_scene import Gateway, gateway
from tests.deployments.callers.test_provider_tokens import let_in, with_tokens
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.fixtures import identity_provider
from tests.fixtures.identity_provider import Provider
from tests.localcluster.controllers.conftest import store
from tests.localcluster.controllers.test_api_keys import model
from tests.waiting import wait_for

__all__ = ["cluster_calls", "gateway", "model", "moving_clock", "store", "world"]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider.running() as made:
        yield made


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_real_envoy_serves_listed_callers_only_and_one_that_is_taken_off_ends_within_seconds(
    world: World, gateway: Gateway, provider: Provider
) -> None:
    deployment = with_tokens(world, provider.jwks_url)
    made = let_in(world, deployment, "system:serviceaccount:billing:jobs")
    let_in(world, deployment, "svc-search", "search")
    gateway.reconcile()
    token = provider.token("system:serviceaccount:billing:jobs")
    wait_for("the caller is served", lambda: gateway.status(bearer(token)) == 200)
    answer = gateway.get(bearer(token))
    served = gateway.counted()
    refused = {
        "no token": gateway.status(),
        "a key": gateway.status(bearer("slc_" + "x" * 43)),
        "expired": gateway.status(bearer(provider.token("svc-search", exp=int(time.time()) - 120))),
        "another audience": gateway.status(bearer(provider.token("svc-search", aud="payroll"))),
        "not listed": gateway.status(bearer(provider.token("svc-stranger"))),
    }

    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=made.row.pk)
    began = time.monotonic()
    gateway.reconcile()
    wait_for("it ends", lambda: gateway.status(bearer(token)) == 403)
    took = time.monotonic() - began

    counter = Counter("gw", "", "vision", "detector", "system:serviceaccount:billing:jobs")
    assert served[counter] >= 1
    assert answer.json()["slipway-caller"] == "system:serviceaccount:billing:jobs"
    assert token not in json.dumps(answer.json())
    assert refused == {
        "no token": 401,
        "a key": 401,
        "expired": 401,
        "another audience": 403,
        "not listed": 403,
    }
    assert took < 5
    assert gateway.status(bearer(provider.token("svc-search"))) == 200
    assert token not in json.dumps(list(AuditEvent.objects.values("after", "before")))
