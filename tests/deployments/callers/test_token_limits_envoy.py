"""From an answer's usage to 429: Envoy counts, the portal reads and pauses the key, Envoy refuses."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx

from deployments.callers.services import token_limits
from deployments.models import CallerKey, Deployment
from fleet.telemetry.domain import caller_metrics
from fleet.telemetry.services import callers
from fleet.telemetry.services.callers import CallersReading, CountedDeployment
from portal.core import clock
from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.store import Store
from tests.deployments.callers import written_policies
from tests.deployments.callers.test_keys import make
from tests.deployments.callers.test_team_address import offer, serving
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.localcluster.controllers.conftest import store
from tests.localcluster.controllers.test_api_keys import _serve
from tests.localcluster.controllers.test_mirror import _envoy
from tests.localcluster.controllers.test_token_counts import language_model
from tests.waiting import wait_for

__all__ = ["cluster_calls", "language_model", "moving_clock", "store", "world"]


def _read(world: World, deployment: Deployment, page: str) -> None:
    """One pass of the sweep, with the real page of the proxy."""
    world.clock.move(10)
    at = clock.now()
    keys = list(CallerKey.objects.filter(deployment=deployment).select_related("consumer"))
    names = {key.client: key.consumer.name for key in keys}
    counted = CountedDeployment("vision", "vision", deployment.name, names, frozenset(names))
    counts = caller_metrics.parse_page(page, proxy="gateway/envoy")
    reading = CallersReading(at, at, counts, frozenset({"gateway/envoy"}))
    tokens = callers.record(cluster_id=world.cluster_id, reading=reading, deployments=[counted])
    pks = {("vision", deployment.name, key.client): key.pk for key in keys}
    by_key = {pks[client]: used for client, used in tokens.items()}
    token_limits.record(cluster_id=world.cluster_id, tokens=by_key)


def test_a_key_that_used_too_many_tokens_gets_429_until_its_time_is_over(
    world: World, store: Store, language_model: Endpoint, tmp_path: Path
) -> None:
    offer()
    deployment = serving(world, "chat")
    limited = make(world, deployment, tokens_per_minute=500)
    free = make(world, deployment, "search")
    port = free_ports.take_one()
    gateway = GatewayController(store, data_dir=tmp_path, port=port)
    gateway.seed()
    _serve(store, language_model, "chat-r1")
    url = f"http://127.0.0.1:{port}/vision/chat/v1/chat/completions"
    assert gateway._files is not None
    stats = f"http://127.0.0.1:{gateway._files.stats_port}/stats/prometheus"

    def push() -> None:
        world.work()
        world.reconcile_now(deployment)
        written_policies.copy(world, store)
        gateway.reconcile()

    push()
    with _envoy(tmp_path, port), httpx.Client(timeout=20) as client:

        def ask(plain: str, tokens: int = 1) -> int:
            headers = {"Authorization": f"Bearer {plain}"}
            return client.post(url, json={"plain": tokens}, headers=headers).status_code

        def page() -> str:
            return client.get(stats, params={"filter": caller_metrics.PAGE_FILTER}).text

        wait_for("the key works", lambda: ask(limited.plain, 400) == 200)
        _read(world, deployment, page())
        below = CallerKey.objects.get(pk=limited.row.pk).paused_until
        used = [ask(limited.plain, 700), ask(free.plain, 90_000)]
        wait_for("it is counted", lambda: "90000" in page())
        _read(world, deployment, page())
        until = CallerKey.objects.get(pk=limited.row.pk).paused_until
        push()
        wait_for("the paused key is refused", lambda: ask(limited.plain) == 429)
        paused = [ask(limited.plain), ask(limited.plain), ask(free.plain)]
        assert until is not None
        world.clock.at = until + timedelta(seconds=1)
        resumed = token_limits.resume_paused()
        push()
        wait_for("it goes on", lambda: ask(limited.plain) == 200)

    assert below is None
    assert used == [200, 200]
    assert paused == [429, 429, 200]
    assert resumed == 1
    assert CallerKey.objects.get(pk=free.row.pk).paused_until is None
