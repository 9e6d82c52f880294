"""A real Envoy with the policies that the portal writes, in front of a model and of a route that needs no key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fleet.telemetry.domain import caller_metrics
from fleet.telemetry.domain.caller_metrics import Counter
from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import HTTP_ROUTE
from slipway_localcluster.store import Store
from tests.deployments.callers import written_policies
from tests.deployments.world import World
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.test_api_keys import _serve
from tests.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

METADATA = "/vision/detector/v2/models/detector"


@dataclass
class Gateway:
    """`client` calls it."""

    world: World
    store: Store
    controller: GatewayController
    client: httpx.Client
    address: str

    def reconcile(self) -> None:
        self.world.work()
        written_policies.copy(self.world, self.store)
        self.controller.reconcile()

    def get(
        self, headers: Mapping[str, str] | None = None, *, path: str = METADATA
    ) -> httpx.Response:
        return self.client.get(self.address + path, headers=headers)

    def status(self, headers: Mapping[str, str] | None = None) -> int:
        return self.get(headers).status_code

    def counted(self) -> dict[Counter, int]:
        assert self.controller._files is not None
        stats = f"http://127.0.0.1:{self.controller._files.stats_port}/stats/prometheus"
        page = self.client.get(stats, params={"filter": caller_metrics.PAGE_FILTER})
        return caller_metrics.parse_page(page.text, proxy="gw")


@pytest.fixture
def gateway(world: World, store: Store, model: object, tmp_path: Path) -> Iterator[Gateway]:
    port = free_ports.take_one()
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
