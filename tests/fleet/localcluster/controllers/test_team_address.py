"""One address for the language models of a team: the portal's routes and policies, real Envoy, and real
servers with random weights where vLLM would run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.manifests.domain import http_route
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.localcluster.controllers import conditions, language_container, processes
from fleet.localcluster.controllers.gateway import GatewayController
from fleet.localcluster.controllers.pod_runner import PORT_ANNOTATION
from fleet.localcluster.kinds import (
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE,
    NAMESPACE,
    POD,
    SECRET,
    SECURITY_POLICY,
    SERVICE,
)
from fleet.localcluster.store import Store
from tests.fleet.localcluster.controllers import language_models, manifests
from tests.fleet.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

KEYS = {"chat": {"billing.1": "key-of-chat"}, "code": {"search.2": "key-of-code"}}
_CHAT = "/vision/v1/chat/completions"
_HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "temperature": 0}


def _context(name: str) -> ManifestContext:
    return replace(language_models.CONTEXT, deployment=name)


def _spec(*, team_address: bool = True) -> ServingSpec:
    return ServingSpec.from_json(
        {
            "engine": "kserve-vllm",
            "instance_type": "g5.xlarge",
            "llm": {"hugging_face_id": "org/model"},
            "network": {"access": "keys", "team_address": team_address},
        }
    )


def _route(name: str, *, team_address: bool = True) -> dict[str, Any]:
    backend = http_route.backend_for(1, _spec(team_address=team_address), 100, model=name)
    return http_route.http_route(_context(name), [backend])


def _pod_of(store: Store, name: str, port: int) -> None:
    labels = {"app": name}
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"name": f"{name}-r1-predictor", "namespace": "vision"}
    store.create(SERVICE, {"metadata": service, "spec": {"selector": labels, "ports": ports}})
    pod = manifests.pod(name)
    pod["metadata"] |= {"labels": labels, "annotations": {f"{PORT_ANNOTATION}8080": str(port)}}
    created = store.create(POD, pod)
    ready = conditions.condition("Ready", conditions.TRUE)
    store.replace_status(POD, created | {"status": {"conditions": [ready]}})


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, int]]:
    """The ports of two language models, by name."""
    ports = dict(zip(KEYS, processes.free_ports(2), strict=True))
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fleet.localcluster.language_server",
                "org/model",
                f"--served-model-name={name}",
                f"--port={port}",
            ],
            env=dict(language_container.environment()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, port in ports.items()
    ]

    def are_up() -> bool:
        addresses = [f"http://127.0.0.1:{port}/health" for port in ports.values()]
        try:
            return all(httpx.get(url, timeout=5).status_code == 200 for url in addresses)
        except httpx.TransportError:
            return False

    wait_for("the language servers answer", are_up)
    yield ports
    for process in running:
        process.terminate()
        process.wait()


@pytest.fixture
def gateway(
    tmp_path: Path, store: Store, servers: dict[str, int]
) -> Iterator[tuple[GatewayController, httpx.Client]]:
    port = processes.free_ports(1)[0]
    controller = GatewayController(store, data_dir=tmp_path, port=port)
    controller.seed()
    store.create(NAMESPACE, manifests.namespace())
    for name, keys in KEYS.items():
        _pod_of(store, name, servers[name])
        store.create(HTTP_ROUTE, _route(name))
        store.create(SECRET, caller_keys.secret(_context(name), keys))
        store.create(SECURITY_POLICY, caller_keys.policy(_context(name)))
    controller.reconcile()
    base = f"http://127.0.0.1:{port}"
    with _envoy(tmp_path, port), httpx.Client(base_url=base, timeout=20) as client:
        wait_for(
            "the gateway answers", lambda: _ask(client, "key-of-chat", "chat").status_code == 200
        )
        yield controller, client


def _ask(client: httpx.Client, key: str, model: str, **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return client.post(_CHAT, json={"model": model, **_HELLO, **body}, headers=headers)


def _listed(client: httpx.Client, key: str) -> list[str]:
    answer = client.get("/vision/v1/models", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    return [row["id"] for row in answer.json()["data"]]


def test_the_model_of_the_body_chooses_the_deployment_and_its_keys_are_checked(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway

    answers = {
        (key, model): _ask(client, key, model).status_code
        for key in ("key-of-chat", "key-of-code", "nobody's", "")
        for model in ("chat", "code", "unknown")
    }

    assert answers == {
        ("key-of-chat", "chat"): 200,
        ("key-of-chat", "code"): 401,
        ("key-of-chat", "unknown"): 404,
        ("key-of-code", "chat"): 401,
        ("key-of-code", "code"): 200,
        ("key-of-code", "unknown"): 404,
        ("nobody's", "chat"): 401,
        ("nobody's", "code"): 401,
        ("nobody's", "unknown"): 401,
        ("", "chat"): 401,
        ("", "code"): 401,
        ("", "unknown"): 401,
    }
    assert _ask(client, "key-of-chat", "chat").json()["model"] == "chat"
    assert _ask(client, "key-of-code", "code").json()["model"] == "code"
    unknown = _ask(client, "key-of-chat", "unknown").json()["error"]
    assert unknown["code"] == "model_not_found"
    assert "GET /vision/v1/models" in unknown["message"]


def test_the_list_has_what_the_key_may_call(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    before = _listed(client, "key-of-chat"), _listed(client, "key-of-code")
    without_key = client.get("/vision/v1/models").status_code

    live = store.get(SECRET, "vision", "code-callers")
    both = caller_keys.secret(_context("code"), {**KEYS["code"], "billing.3": "another"})
    store.replace(SECRET, live | {"data": both["data"]})
    controller.reconcile()
    wait_for("a new key is known", lambda: _ask(client, "another", "code").status_code == 200)

    assert before == (["chat"], ["code"])
    assert without_key == 401
    assert _listed(client, "another") == ["code"]


def test_nothing_but_the_body_chooses(gateway: tuple[GatewayController, httpx.Client]) -> None:
    _, client = gateway
    headers = {"Authorization": "Bearer key-of-chat", "X-Gateway-Model-Name": "code"}

    by_header = client.post(_CHAT, json={"model": "chat", **_HELLO}, headers=headers)
    without_model = client.post(_CHAT, json=_HELLO, headers=headers)
    no_json = client.post(_CHAT, content="{", headers={**headers, "Content-Type": "text/plain"})
    broken = client.post(
        _CHAT, content='{"model":', headers={**headers, "Content-Type": "application/json"}
    )
    number = client.post(_CHAT, json={"model": 1, **_HELLO}, headers=headers)

    assert (by_header.status_code, by_header.json()["model"]) == (200, "chat")
    refused = [without_model, no_json, broken, number]
    assert [answer.status_code for answer in refused] == [404] * 4


def test_tokens_arrive_one_by_one(gateway: tuple[GatewayController, httpx.Client]) -> None:
    _, client = gateway
    body = {"model": "code", **_HELLO, "max_tokens": 30, "stream": True}
    arrived: list[float] = []

    with client.stream("POST", _CHAT, json=body, headers={"x-api-key": "key-of-code"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        arrived.extend(time.monotonic() for line in answer.iter_lines() if line)

    assert len(arrived) == 33
    # A step takes at least 20 ms, so a gateway that collected the answer would deliver all at once.
    assert arrived[-2] - arrived[1] > 0.02 * 29 / 2


def test_a_long_conversation_is_read_to_its_model(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    """More than Envoy buffers of a request by default. The server refuses it, so it has got there."""
    _, client = gateway
    messages = [{"role": "user", "content": "a" * (3 << 20)}]

    answer = _ask(client, "key-of-chat", "chat", messages=messages)

    assert answer.status_code == 400
    assert "maximum" in answer.text


def test_limits_and_the_caller_s_name_hold_there_too(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    limits = caller_keys.limits(_context("chat"), {"billing.1": caller_keys.ClientLimit(3)})
    store.create(BACKEND_TRAFFIC_POLICY, limits)
    controller.reconcile()

    def is_limited() -> bool:
        return "x-ratelimit-remaining" in _ask(client, "key-of-chat", "chat").headers

    wait_for("the limit holds", is_limited)
    answers = [_ask(client, "key-of-chat", "chat").status_code for _ in range(4)]

    assert answers == [200, 200, 429, 429]
    assert _ask(client, "key-of-code", "code").status_code == 200


def test_a_deployment_that_leaves_the_address_is_gone_from_it_only(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    live = store.get(HTTP_ROUTE, "vision", "code")
    store.replace(HTTP_ROUTE, live | {"spec": _route("code", team_address=False)["spec"]})
    controller.reconcile()
    wait_for("it is gone", lambda: _ask(client, "key-of-code", "code").status_code == 401)

    own = client.post(
        "/vision/code/v1/chat/completions",
        json={"model": "code", **_HELLO},
        headers={"x-api-key": "key-of-code"},
    )

    assert own.status_code == 200
    assert _ask(client, "key-of-chat", "code").status_code == 404
    assert _listed(client, "key-of-chat") == ["chat"]


def test_a_route_without_keys_is_not_served_there(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    store.delete(SECURITY_POLICY, "vision", "code")
    controller.reconcile()
    wait_for("its own address is open", lambda: _own(client) == 200)

    assert _ask(client, "", "code").status_code == 401
    assert _ask(client, "key-of-chat", "code").status_code == 404


def _own(client: httpx.Client) -> int:
    body = {"model": "code", **_HELLO}
    return client.post("/vision/code/v1/chat/completions", json=body).status_code


def test_other_addresses_are_not_buffered_and_json_of_any_size_passes(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway
    body = json.dumps({"model": "chat", "messages": [{"role": "user", "content": "a" * (3 << 20)}]})
    headers = {"x-api-key": "key-of-chat", "Content-Type": "application/json"}

    answer = client.post("/vision/chat/v1/chat/completions", content=body, headers=headers)

    assert answer.status_code == 400, "the server's own refusal"
    assert "maximum" in answer.text
