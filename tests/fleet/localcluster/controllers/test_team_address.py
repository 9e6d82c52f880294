"""One address for the language models of a team: the portal's routes and policies, real Envoy, and real
servers with random weights where vLLM would run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.manifests.domain import http_route
from deployments.manifests.domain.access import caller_keys, team_address
from deployments.manifests.domain.access.team_script import Member
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.localcluster.controllers import (
    api_keys,
    conditions,
    language_container,
    processes,
    scripts,
)
from fleet.localcluster.controllers.gateway import GatewayController
from fleet.localcluster.controllers.pod_runner import PORT_ANNOTATION
from fleet.localcluster.kinds import (
    BACKEND_TRAFFIC_POLICY,
    ENVOY_EXTENSION_POLICY,
    HTTP_ROUTE,
    NAMESPACE,
    POD,
    SECRET,
    SECURITY_POLICY,
    SERVICE,
    Kind,
)
from fleet.localcluster.store import Store
from tests.fleet.localcluster.controllers import language_models, manifests
from tests.fleet.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

KEYS = {"chat": {"billing.1": "key-of-chat"}, "code": {"search.2": "key-of-code"}}
_OF_THE_ADDRESS = (SECURITY_POLICY, BACKEND_TRAFFIC_POLICY, ENVOY_EXTENSION_POLICY, HTTP_ROUTE)
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


def _write_address(store: Store, names: list[str]) -> None:
    members = [Member(name, (name,)) for name in names]
    kinds = {kind.kind: kind for kind in _OF_THE_ADDRESS}
    for manifest in team_address.manifests(_context("chat"), members):
        _replace(store, kinds[manifest["kind"]], manifest)


def _replace(store: Store, kind: Kind, manifest: dict[str, Any]) -> None:
    live = store.find(kind, "vision", manifest["metadata"]["name"])
    content = {key: manifest[key] for key in ("spec", "data") if key in manifest}
    if live is None:
        store.create(kind, manifest)
    else:
        store.replace(kind, live | content)


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
    with _running(tmp_path, store, servers) as (controller, client):
        wait_for(
            "the gateway answers", lambda: _ask(client, "key-of-chat", "chat").status_code == 200
        )
        yield controller, client


@contextmanager
def _running(
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
        store.create(SECRET, team_address.secret(_context(name), keys))
        store.create(SECURITY_POLICY, caller_keys.policy(_context(name)))
    _write_address(store, list(KEYS))
    controller.reconcile()
    base = f"http://127.0.0.1:{port}"
    with _envoy(tmp_path, port), httpx.Client(base_url=base, timeout=20) as client:
        yield controller, client


def _ask(client: httpx.Client, key: str, model: str, **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return client.post(_CHAT, json={"model": model, **_HELLO, **body}, headers=headers)


def _listed(client: httpx.Client, key: str) -> list[str]:
    answer = client.get("/vision/v1/models", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    return [row["id"] for row in answer.json()["data"]]


def test_the_model_of_the_body_chooses_the_deployment_and_its_keys_open_it(
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

    both = {**KEYS["code"], "billing.3": "another"}
    _replace(store, SECRET, team_address.secret(_context("code"), both))
    controller.reconcile()
    wait_for("a new key is known", lambda: _ask(client, "another", "code").status_code == 200)

    assert before == (["chat"], ["code"])
    assert without_key == 401
    assert _listed(client, "another") == ["code"]


# Bodies with the answer to the key of *chat*. 422 and 400 of the server: it got there.
_BODIES = [
    ('{"messages": [{"model": "code"}], "model": "chat"}', "served"),
    ('{"text": "\\\\", "model": "chat", "a": "\\"model\\": \\"code\\""}', "served"),
    ('{"a": {"model": "code"}, "model"\n:\t"chat"}', "served"),
    # The last counts, as for the server.
    ('{"model": "code", "model": "chat"}', "served"),
    ('{"model": "chat", "model": "code"}', "invalid_api_key"),
    ('{"messages": [], "note": {"model": "chat"}}', "model_required"),
    ('{"messages": ["model", "chat"]}', "model_required"),
    ('{"model": 1}', "model_required"),
    ('{"model": null}', "model_required"),
    ('["model"]', "model_required"),
    ('{"model":', "model_required"),
    ('{"model": "chat', "model_required"),
    ("model=chat", "model_required"),
    ("", "model_required"),
    ("[" * 100_000, "model_required"),
    ("{" + '"a":[],' * 600_000 + '"model": "chat"}', "model_required"),
    ('{"model": ""}', "model_not_found"),
    ('{"model": "chat.billing"}', "model_not_found"),
    ('{"model": "ch\\u0061t"}', "model_not_found"),
    ('{"model": "other-team/chat"}', "model_not_found"),
]


def test_the_model_is_a_text_of_the_outermost_object(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway
    headers = {"x-api-key": "key-of-chat", "Content-Type": "application/json"}

    def outcome(body: str) -> str:
        answer = client.post(_CHAT, content=body, headers=headers)
        if answer.status_code == 200:
            return "served"
        error = answer.json()["error"]
        # The server's own refusals have a number.
        return str(error["code"]) if isinstance(error["code"], str) else "served"

    assert [(body[:60], outcome(body)) for body, _ in _BODIES] == [
        (body[:60], expected) for body, expected in _BODIES
    ]


def test_what_a_caller_writes_into_headers_opens_nothing(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway
    body = {"model": "code", **_HELLO}

    def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post(_CHAT, json=body, headers=named).status_code

    answers = [
        status(slipway_team_caller="code.search.2"),
        status(slipway_team_caller="code.search.2", x_api_key="key-of-chat"),
        status(slipway_caller="search.2", x_api_key="key-of-chat"),
        # Whoever names the model himself meets the keys of its own route.
        status(x_gateway_model_name="code"),
        status(x_gateway_model_name="code", x_api_key="key-of-chat"),
        status(x_gateway_model_name="code", slipway_team_caller="code.search.2"),
    ]

    assert answers == [401] * 6
    assert status(x_gateway_model_name="code", x_api_key="key-of-code") == 200


def test_where_the_script_runs_first_the_keys_of_the_route_that_it_chose_are_checked(
    tmp_path: Path, store: Store, servers: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A platform can put filters into another order (`filterOrder`): the script then believes what a caller
    wrote.
    """
    keys, (buffer, script) = api_keys.disabled_filter(), scripts.disabled_filters()
    monkeypatch.setattr(api_keys, "disabled_filter", lambda: script)
    monkeypatch.setattr(scripts, "disabled_filters", lambda: [buffer, keys])

    with _running(tmp_path, store, servers) as (_, client):

        def status(model: str, key: str = "", wrote: str = "") -> int:
            named = {"x-api-key": key, "slipway-team-caller": wrote}
            headers = {name: value for name, value in named.items() if value}
            return client.post(_CHAT, json={"model": model, **_HELLO}, headers=headers).status_code

        wait_for("it answers", lambda: status("chat", "key-of-chat", "chat.billing.1") == 200)
        answers = [
            status("chat"),
            status("chat", "key-of-chat"),
            status("chat", wrote="chat.billing.1"),
            status("code", wrote="code.search.2"),
            status("code", "key-of-chat", "code.search.2"),
            status("code", "key-of-chat", "chat.billing.1"),
        ]

    assert answers == [401] * 6


def test_a_body_over_the_limit_is_refused(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway
    messages = [{"role": "user", "content": "a" * (33 << 20)}]

    assert _ask(client, "key-of-chat", "chat", messages=messages).status_code == 413
    assert _ask(client, "key-of-chat", "chat").status_code == 200


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
    _write_address(store, ["chat"])
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


def test_a_model_whose_route_is_not_there_yet_is_not_served_by_another(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    store.delete(HTTP_ROUTE, "vision", "code")
    controller.reconcile()

    wait_for("its route is gone", lambda: _own(client) == 404)

    assert _ask(client, "key-of-code", "code").status_code == 500
    assert _ask(client, "key-of-chat", "chat").status_code == 200


@pytest.mark.parametrize("kind", [SECRET, SECURITY_POLICY, ENVOY_EXTENSION_POLICY])
def test_without_one_of_its_parts_nobody_is_served_there(
    gateway: tuple[GatewayController, httpx.Client], store: Store, kind: Kind
) -> None:
    controller, client = gateway
    name = "chat-team-callers" if kind is SECRET else team_address.NAME
    store.delete(kind, "vision", name)
    controller.reconcile()
    wait_for("it is gone", lambda: _ask(client, "key-of-chat", "chat").status_code != 200)

    assert _ask(client, "", "chat").status_code in (401, 500)
    assert _ask(client, "key-of-code", "chat").status_code in (401, 500)


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
