"""One address for the language models of a team: the model in the body chooses the deployment."""

from __future__ import annotations

import json
import time

import httpx

from deployments.manifests.domain.access import caller_keys, limit_rules, team_address
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import (
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE,
    SECRET,
)
from slipway_localcluster.store import Store
from tests.localcluster.controllers.team_gateway import (
    CHAT,
    HELLO,
    KEYS,
    ask,
    context,
    gateway,
    listed,
    route,
    servers,
    write,
    write_address,
)
from tests.waiting import wait_for

__all__ = ["gateway", "servers"]


def test_the_model_of_the_body_chooses_the_deployment_and_its_keys_open_it(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway

    answers = {
        (key, model): ask(client, key, model).status_code
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
    assert ask(client, "key-of-chat", "chat").json()["model"] == "chat"
    assert ask(client, "key-of-code", "code").json()["model"] == "code"
    unknown = ask(client, "key-of-chat", "unknown").json()["error"]
    assert unknown["code"] == "model_not_found"
    assert "GET /vision/v1/models" in unknown["message"]


def test_the_list_has_what_the_key_may_call(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    before = listed(client, "key-of-chat"), listed(client, "key-of-code")
    without_key = client.get("/vision/v1/models").status_code

    both = {**KEYS["code"], "billing.3": "another"}
    write(store, SECRET, team_address.secret(context("code"), both))
    controller.reconcile()
    wait_for("a new key is known", lambda: ask(client, "another", "code").status_code == 200)

    assert before == (["chat"], ["code"])
    assert without_key == 401
    assert listed(client, "another") == ["code"]


def test_tokens_arrive_one_by_one(gateway: tuple[GatewayController, httpx.Client]) -> None:
    _, client = gateway
    body = {"model": "code", **HELLO, "max_tokens": 30, "stream": True}
    arrived: list[float] = []

    with client.stream("POST", CHAT, json=body, headers={"x-api-key": "key-of-code"}) as answer:
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

    answer = ask(client, "key-of-chat", "chat", messages=messages)

    assert answer.status_code == 400
    assert "maximum" in answer.text


def test_limits_and_the_caller_s_name_hold_there_too(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    planned = limit_rules.rules_of(
        {"billing.1": limit_rules.ClientLimit(3)}, header="slipway-caller", are_numbered=True
    )
    limits = caller_keys.limits(context("chat"), planned.rules)
    store.create(BACKEND_TRAFFIC_POLICY, limits)
    controller.reconcile()

    def is_limited() -> bool:
        return "x-ratelimit-remaining" in ask(client, "key-of-chat", "chat").headers

    wait_for("the limit holds", is_limited)
    answers = [ask(client, "key-of-chat", "chat").status_code for _ in range(4)]

    assert answers == [200, 200, 429, 429]
    assert ask(client, "key-of-code", "code").status_code == 200


def test_a_deployment_that_leaves_the_address_is_gone_from_it_only(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    live = store.get(HTTP_ROUTE, "vision", "code")
    store.replace(HTTP_ROUTE, live | {"spec": route("code", team_address=False)["spec"]})
    write_address(store, ["chat"])
    controller.reconcile()
    wait_for("it is gone", lambda: ask(client, "key-of-code", "code").status_code == 401)

    own = client.post(
        "/vision/code/v1/chat/completions",
        json={"model": "code", **HELLO},
        headers={"x-api-key": "key-of-code"},
    )

    assert own.status_code == 200
    assert ask(client, "key-of-chat", "code").status_code == 404
    assert listed(client, "key-of-chat") == ["chat"]


def test_other_addresses_are_not_buffered_and_json_of_any_size_passes(
    gateway: tuple[GatewayController, httpx.Client],
) -> None:
    _, client = gateway
    body = json.dumps({"model": "chat", "messages": [{"role": "user", "content": "a" * (3 << 20)}]})
    headers = {"x-api-key": "key-of-chat", "Content-Type": "application/json"}

    answer = client.post("/vision/chat/v1/chat/completions", content=body, headers=headers)

    assert answer.status_code == 400, "the server's own refusal"
    assert "maximum" in answer.text
