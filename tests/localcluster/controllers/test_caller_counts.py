"""What each client of API keys was served, as a real Envoy counts it."""

from __future__ import annotations

from pathlib import Path

import httpx

from fleet.telemetry.domain import caller_metrics
from fleet.telemetry.domain.caller_metrics import Counter
from slipway_localcluster.controllers import envoy_stats, free_ports
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import HTTP_ROUTE, SECRET, SECURITY_POLICY
from slipway_localcluster.store import Store
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.test_api_keys import _POLICY, _secret, _serve, model
from tests.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

__all__ = ["model"]


def test_each_client_is_counted_by_what_it_was_served_also_after_its_key_ended(
    tmp_path: Path, store: Store, model: Endpoint
) -> None:
    port = free_ports.take_one()
    gateway = GatewayController(store, data_dir=tmp_path, port=port)
    gateway.seed()
    _serve(store, model, "one", "two")
    store.create(HTTP_ROUTE, manifests.route({"one": 100}))
    store.create(HTTP_ROUTE, manifests.route({"two": 100}, "free"))
    store.create(SECRET, _secret(**{"billing.17": "first", "search.2": "second"}))
    store.create(SECURITY_POLICY, _POLICY)
    gateway.reconcile()
    keyed, free = (f"http://127.0.0.1:{port}/vision/{name}/v2" for name in ("digits", "free"))
    assert gateway._files is not None
    metrics = f"http://127.0.0.1:{gateway._files.stats_port}{envoy_stats.PATH}"

    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:

        def send(times: int, url: str, **headers: str) -> set[int]:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            return {client.get(url, headers=sent).status_code for _ in range(times)}

        def counts() -> dict[str, int]:
            text = client.get(metrics, params={"filter": caller_metrics.PAGE_FILTER}).text
            assert "first" not in text
            read = caller_metrics.parse_page(text, proxy="envoy")
            assert set(read) == {
                Counter("envoy", "", "vision", "digits", counter.client) for counter in read
            }
            return {counter.client: value for counter, value in read.items()}

        wait_for("the open route answers", lambda: send(1, free) == {200})
        before = counts()
        statuses = [
            send(5, keyed, x_api_key="first"),
            send(1, f"{keyed}/models?all=1", x_api_key="first"),
            send(3, keyed, x_api_key="second", slipway_caller="billing.17"),
            # Neither a wrong key nor an open route is a request of the caller it names.
            send(4, keyed, x_api_key="third", slipway_caller="billing.17"),
            send(4, free, slipway_caller="billing.17"),
        ]
        sent = counts()
        live = store.get(SECRET, "vision", "digits-callers")
        rest = _secret(**{"search.2": "second", "search.18": "fourth"})
        store.replace(SECRET, live | {"data": rest["data"]})
        gateway.reconcile()
        # Envoy still serves the old key until it has read its new configuration.
        answers: list[int] = []

        def old_key_is_refused() -> bool:
            answers.extend(send(1, keyed, x_api_key="first"))
            return answers[-1] == 401

        wait_for("the key ends", old_key_is_refused)
        statuses.append(send(2, keyed, x_api_key="fourth"))
        after = counts()

    assert statuses == [{200}, {200}, {200}, {401}, {200}, {200}]
    assert before == {"billing.17": 0, "search.2": 0}
    assert sent == {"billing.17": 6, "search.2": 3}
    assert set(answers) <= {200, 401}
    assert after == {"billing.17": 6 + answers.count(200), "search.2": 3, "search.18": 2}
