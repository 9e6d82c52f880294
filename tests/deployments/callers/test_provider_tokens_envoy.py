"""A real Envoy with the policies that the portal writes serves listed callers with valid tokens, and nobody else."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from deployments.callers.services import keys
from fleet.localcluster.controllers import processes
from fleet.localcluster.controllers.gateway import GatewayController
from fleet.localcluster.kinds import HTTP_ROUTE
from fleet.localcluster.store import Store
from fleet.telemetry.domain import caller_metrics
from fleet.telemetry.domain.caller_metrics import Counter
from portal.audit.models import AuditEvent
from tests.deployments.callers import written_policies
from tests.deployments.callers.test_provider_tokens import let_in, with_tokens
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.fixtures import identity_provider
from tests.fixtures.identity_provider import Provider
from tests.fleet.localcluster.controllers import manifests
from tests.fleet.localcluster.controllers.conftest import store
from tests.fleet.localcluster.controllers.test_api_keys import _serve, model
from tests.fleet.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

__all__ = ["cluster_calls", "model", "moving_clock", "store", "world"]
_METADATA = "/vision/detector/v2/models/detector"


@dataclass
class Gateway:
    """Envoy with the portal's policies; `client` calls it."""

    world: World
    store: Store
    controller: GatewayController
    client: httpx.Client
    address: str

    def reconcile(self) -> None:
        self.world.work()
        written_policies.copy(self.world, self.store)
        self.controller.reconcile()

    def get(self, token: str = "", path: str = _METADATA) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.get(self.address + path, headers=headers)

    def counted(self) -> dict[Counter, int]:
        assert self.controller._files is not None
        stats = f"http://127.0.0.1:{self.controller._files.stats_port}/stats/prometheus"
        page = self.client.get(stats, params={"filter": caller_metrics.PAGE_FILTER})
        return caller_metrics.parse_page(page.text, proxy="gw")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider.running() as made:
        yield made


@pytest.fixture
def gateway(world: World, store: Store, model: object, tmp_path: Path) -> Iterator[Gateway]:
    port = processes.free_ports(1)[0]
    controller = GatewayController(store, data_dir=tmp_path, port=port)
    controller.seed()
    _serve(store, model, "detector-r1", "free")  # type: ignore[arg-type]
    store.create(HTTP_ROUTE, manifests.route({"free": 100}, "free"))
    controller.reconcile()
    address = f"http://127.0.0.1:{port}"
    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:
        made = Gateway(world, store, controller, client, address)
        wait_for("another route answers", lambda: made.get(path="/vision/free/v2").is_success)
        yield made


def test_a_real_envoy_serves_listed_callers_only_and_one_that_is_taken_off_ends_within_seconds(
    world: World, gateway: Gateway, provider: Provider
) -> None:
    deployment = with_tokens(world, provider.jwks_url)
    made = let_in(world, deployment, "system:serviceaccount:billing:jobs")
    let_in(world, deployment, "svc-search", "search")
    gateway.reconcile()
    token = provider.token("system:serviceaccount:billing:jobs")
    wait_for("the caller is served", lambda: gateway.get(token).status_code == 200)
    answer = gateway.get(token)
    served = gateway.counted()
    refused = {
        "no token": gateway.get().status_code,
        "a key": gateway.get("slc_" + "x" * 43).status_code,
        "expired": gateway.get(
            provider.token("svc-search", exp=int(time.time()) - 120)
        ).status_code,
        "another audience": gateway.get(provider.token("svc-search", aud="payroll")).status_code,
        "not listed": gateway.get(provider.token("svc-stranger")).status_code,
    }

    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=made.row.pk)
    began = time.monotonic()
    gateway.reconcile()
    wait_for("it ends", lambda: gateway.get(token).status_code == 403)
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
    assert gateway.get(provider.token("svc-search")).status_code == 200
    assert token not in json.dumps(list(AuditEvent.objects.values("after", "before")))
