"""What a team's address refuses: keys of others, headers, bodies, and an address of which a part is missing."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from deployments.manifests.domain.access import team_address
from slipway_localcluster.controllers import api_keys, scripts
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import (
    ENVOY_EXTENSION_POLICY,
    HTTP_ROUTE,
    SECRET,
    SECURITY_POLICY,
    Kind,
)
from slipway_localcluster.store import Store
from tests.localcluster.controllers.team_gateway import (
    CHAT,
    HELLO,
    ask,
    gateway,
    own,
    running,
    servers,
)
from tests.waiting import wait_for

__all__ = ["gateway", "servers"]


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
        answer = client.post(CHAT, content=body, headers=headers)
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
    body = {"model": "code", **HELLO}

    def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post(CHAT, json=body, headers=named).status_code

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

    with running(tmp_path, store, servers) as (_, client):

        def status(model: str, key: str = "", wrote: str = "") -> int:
            named = {"x-api-key": key, "slipway-team-caller": wrote}
            headers = {name: value for name, value in named.items() if value}
            return client.post(CHAT, json={"model": model, **HELLO}, headers=headers).status_code

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

    assert ask(client, "key-of-chat", "chat", messages=messages).status_code == 413
    assert ask(client, "key-of-chat", "chat").status_code == 200


def test_a_model_whose_route_is_not_there_yet_is_not_served_by_another(
    gateway: tuple[GatewayController, httpx.Client], store: Store
) -> None:
    controller, client = gateway
    store.delete(HTTP_ROUTE, "vision", "code")
    controller.reconcile()

    wait_for("its route is gone", lambda: own(client) == 404)

    assert ask(client, "key-of-code", "code").status_code == 500
    assert ask(client, "key-of-chat", "chat").status_code == 200


@pytest.mark.parametrize("kind", [SECRET, SECURITY_POLICY, ENVOY_EXTENSION_POLICY])
def test_without_one_of_its_parts_nobody_is_served_there(
    gateway: tuple[GatewayController, httpx.Client], store: Store, kind: Kind
) -> None:
    controller, client = gateway
    name = "chat-team-callers" if kind is SECRET else team_address.NAME
    store.delete(kind, "vision", name)
    controller.reconcile()
    wait_for("it is gone", lambda: ask(client, "key-of-chat", "chat").status_code != 200)

    assert ask(client, "", "chat").status_code in (401, 500)
    assert ask(client, "key-of-code", "chat").status_code in (401, 500)
