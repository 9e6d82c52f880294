"""SecurityPolicies with API keys through a real Envoy: who gets an answer, and what the model sees."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway_localcluster.controllers import conditions, free_ports
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.controllers.pod_runner import PORT_ANNOTATION
from slipway_localcluster.kinds import HTTP_ROUTE, NAMESPACE, POD, SECRET, SECURITY_POLICY, SERVICE
from slipway_localcluster.store import Store
from tests.fixtures.http_server import serving
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

_POLICY: dict[str, Any] = {
    "metadata": {"name": "digits", "namespace": "vision"},
    "spec": {
        "targetRefs": [
            {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "digits"}
        ],
        "apiKeyAuth": {
            "credentialRefs": [{"name": "digits-callers"}],
            "extractFrom": [{"headers": ["x-api-key", "Authorization"]}],
            "forwardClientIDHeader": "slipway-caller",
            "sanitize": True,
        },
    },
}


class _Model(BaseHTTPRequestHandler):
    """Answers with the headers that it got and its name."""

    def do_GET(self) -> None:
        body = json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def model() -> Iterator[Endpoint]:
    with serving(_Model) as port:
        yield Endpoint("127.0.0.1", port)


def _secret(**keys: str) -> dict[str, Any]:
    data = {client: base64.b64encode(key.encode()).decode() for client, key in keys.items()}
    return {"metadata": {"name": "digits-callers", "namespace": "vision"}, "data": data}


def _serve(store: Store, endpoint: Endpoint, *names: str) -> None:
    """Ready pods of these Services, whose port is that of the endpoint."""
    store.create(NAMESPACE, manifests.namespace())
    for name in names:
        labels = {"app": name}
        store.create(
            SERVICE,
            {
                "metadata": {"name": f"{name}-predictor", "namespace": "vision"},
                "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
            },
        )
        annotations = {f"{PORT_ANNOTATION}8080": str(endpoint.port)}
        pod = store.create(
            POD,
            {
                "metadata": {
                    "name": name,
                    "namespace": "vision",
                    "labels": labels,
                    "annotations": annotations,
                },
                "spec": {"containers": [{"name": "model", "image": "model"}]},
            },
        )
        ready = conditions.condition("Ready", conditions.TRUE)
        store.replace_status(POD, pod | {"status": {"conditions": [ready]}})


def _accepted(store: Store) -> tuple[str, str]:
    policy = store.get(SECURITY_POLICY, "vision", "digits")
    condition = policy["status"]["ancestors"][0]["conditions"][0]
    return condition["status"], condition["message"]


def test_only_callers_with_a_current_key_are_served_and_the_model_sees_their_name_not_their_key(
    tmp_path: Path, store: Store, model: Endpoint
) -> None:
    port = free_ports.take_one()
    gateway = GatewayController(store, data_dir=tmp_path, port=port)
    gateway.seed()
    _serve(store, model, "one", "two")
    store.create(HTTP_ROUTE, manifests.route({"one": 100}))
    store.create(HTTP_ROUTE, manifests.route({"two": 100}, "free"))
    store.create(SECRET, _secret(billing="first", search="second"))
    store.create(SECURITY_POLICY, _POLICY)
    gateway.reconcile()
    keyed, free = (f"http://127.0.0.1:{port}/vision/{name}/v2" for name in ("digits", "free"))

    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:

        def status(headers: dict[str, str] | None = None, url: str = keyed) -> int:
            return client.get(url, headers=headers).status_code

        wait_for("the open route answers", lambda: status(url=free) == 200)
        before = {
            "no key": status(),
            "wrong": status({"x-api-key": "third"}),
            "empty": status({"x-api-key": ""}),
            "client": status({"x-api-key": "billing"}),
        }
        by_header = client.get(keyed, headers={"x-api-key": "first"})
        as_bearer = client.get(keyed, headers={"Authorization": "Bearer second"})
        live = store.get(SECRET, "vision", "digits-callers")
        store.replace(SECRET, live | {"data": _secret(search="second")["data"]})
        gateway.reconcile()
        wait_for("the removed key ends", lambda: status({"x-api-key": "first"}) == 401)
        kept = status({"x-api-key": "second"})
        store.delete(SECRET, "vision", "digits-callers")
        gateway.reconcile()
        wait_for(
            "without its Secret it serves nobody", lambda: status({"x-api-key": "second"}) == 500
        )
        refusal = _accepted(store)
        store.delete(SECURITY_POLICY, "vision", "digits")
        gateway.reconcile()
        wait_for("without the policy it is open", lambda: status() == 200)

    assert before == {"no key": 401, "wrong": 401, "empty": 401, "client": 401}
    assert (by_header.status_code, as_bearer.status_code, kept) == (200, 200, 200)
    assert by_header.json()["slipway-caller"] == "billing"
    assert as_bearer.json()["slipway-caller"] == "search"
    assert not {"x-api-key", "authorization"} & {*by_header.json(), *as_bearer.json()}
    assert refusal == ("False", "Secret vision/digits-callers does not exist")
