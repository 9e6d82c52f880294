"""SecurityPolicies with JWTs through a real Envoy: who gets an answer, and what the model sees."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import HTTP_ROUTE, SECURITY_POLICY
from slipway_localcluster.store import Store
from tests.fixtures import identity_provider
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, Provider
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.test_api_keys import _accepted, _serve, model
from tests.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

__all__ = ["model"]
# So that a changed key set is fetched while the test waits.
_CACHE = "1s"
_PATH = "/vision/digits/v2"


def _policy(provider: Provider, values: list[str], **required: list[str]) -> dict[str, Any]:
    claims = [{"name": "sub", "valueType": "String", "values": values}]
    claims += [
        {"name": name, "valueType": "StringArray", "values": listed}
        for name, listed in required.items()
    ]
    rule = {"action": "Allow", "principal": {"jwt": {"provider": "acme", "claims": claims}}}
    return {
        "metadata": {"name": "digits", "namespace": "vision"},
        "spec": {
            "targetRefs": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "digits"}
            ],
            "jwt": {
                "providers": [
                    {
                        "name": "acme",
                        "issuer": ISSUER,
                        "audiences": [AUDIENCE],
                        "remoteJWKS": {"uri": provider.jwks_url, "cacheDuration": _CACHE},
                        "extractFrom": {
                            "headers": [
                                {"name": "Authorization", "valuePrefix": "Bearer "},
                                {"name": "x-api-key"},
                            ]
                        },
                        "claimToHeaders": [{"header": "slipway-caller", "claim": "sub"}],
                    }
                ]
            },
            "authorization": {"defaultAction": "Deny", "rules": [rule] if values else []},
        },
    }


@dataclass
class Gateway:
    controller: GatewayController
    store: Store
    client: httpx.Client
    address: str
    folder: Path
    port: int

    def get(self, token: str = "", **headers: str) -> httpx.Response:
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.get(self.address + _PATH, headers={**sent, **headers})

    def status(self, token: str = "", **headers: str) -> int:
        return self.get(token, **headers).status_code

    def allow(self, provider: Provider, *values: str, **required: list[str]) -> None:
        live = self.store.get(SECURITY_POLICY, "vision", "digits")
        self.store.replace(
            SECURITY_POLICY, live | {"spec": _policy(provider, list(values), **required)["spec"]}
        )
        self.controller.reconcile()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider.running() as made:
        yield made


@pytest.fixture
def gateway(tmp_path: Path, store: Store, model: Endpoint, provider: Provider) -> Iterator[Gateway]:
    port = free_ports.take_one()
    controller = GatewayController(store, data_dir=tmp_path, port=port)
    controller.seed()
    _serve(store, model, "one", "two")
    route = manifests.route({"one": 100})
    removed = {"remove": ["Authorization", "x-api-key"]}
    route["spec"]["rules"][0]["filters"].append(
        {"type": "RequestHeaderModifier", "requestHeaderModifier": removed}
    )
    store.create(HTTP_ROUTE, route)
    store.create(HTTP_ROUTE, manifests.route({"two": 100}, "free"))
    store.create(SECURITY_POLICY, _policy(provider, ["svc-billing", "repo:acme/train"]))
    controller.reconcile()
    address = f"http://127.0.0.1:{port}"
    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:
        made = Gateway(controller, store, client, address, tmp_path, port)
        wait_for("a listed caller is served", lambda: _is_served(made, provider))
        yield made


def _is_served(gateway: Gateway, provider: Provider) -> bool:
    return gateway.status(provider.token("svc-billing")) == 200


def _unsigned(claims: dict[str, Any]) -> str:
    parts = ({"alg": "none", "typ": "JWT", "kid": "first"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*encoded, b""]).decode()


def _with_public_key_as_secret(provider: Provider) -> str:
    """HS256 with the provider's public key as the secret: what a confused verifier accepts."""
    public = provider.keys["first"].public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    payload = json.loads(_payload(provider.token("svc-billing")))
    parts = ({"alg": "HS256", "typ": "JWT", "kid": "first"}, payload)
    head = b".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts
    )
    signed = base64.urlsafe_b64encode(hmac.digest(pem, head, hashlib.sha256)).rstrip(b"=")
    return (head + b"." + signed).decode()


def _payload(token: str) -> bytes:
    middle = token.split(".")[1]
    return base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4))


def test_only_listed_callers_with_a_valid_token_are_served(
    gateway: Gateway, provider: Provider
) -> None:
    now = int(time.time())
    valid = provider.token("svc-billing")
    provider.add_key("unpublished", publish=False)
    stranger = identity_provider.Provider()
    stranger.add_key("first")
    refused = {
        "no token": gateway.status(),
        "no JWT": gateway.status("opaque"),
        "a key": gateway.status(**{"x-api-key": "slc_" + "x" * 43}),
        "expired": gateway.status(provider.token("svc-billing", exp=now - 120)),
        "not yet": gateway.status(provider.token("svc-billing", nbf=now + 300)),
        "another audience": gateway.status(provider.token("svc-billing", aud="payroll")),
        "no audience": gateway.status(provider.token("svc-billing", aud=[])),
        "another issuer": gateway.status(provider.token("svc-billing", iss="https://evil.example")),
        "alg none": gateway.status(_unsigned(json.loads(_payload(valid)))),
        "alg HS256": gateway.status(_with_public_key_as_secret(provider)),
        "unknown key id": gateway.status(provider.token("svc-billing", "unpublished")),
        "signed by another": gateway.status(stranger.token("svc-billing")),
        "altered": gateway.status(valid[:-6] + "AAAAAA"),
        "in the URL": gateway.client.get(
            f"{gateway.address}{_PATH}?access_token={valid}"
        ).status_code,
        "not listed": gateway.status(provider.token("svc-other")),
        "no subject": gateway.status(jwt.encode(_without("sub"), provider.keys["first"], "RS256")),
        "a number": gateway.status(
            jwt.encode({**_without("sub"), "sub": 17}, provider.keys["first"], "RS256")
        ),
        "its name alone": gateway.status(**{"slipway-caller": "svc-billing"}),
    }
    answer = gateway.get(valid, **{"slipway-caller": "somebody"})
    path = gateway.get(provider.token("repo:acme/train"))
    by_key_header = gateway.get(**{"x-api-key": valid})
    free = gateway.client.get(
        f"{gateway.address}/vision/free/v2", headers={"Authorization": "Bearer opaque"}
    )

    assert refused == {
        **dict.fromkeys(refused, 401),
        "another audience": 403,
        "no audience": 403,
        "not listed": 403,
        "no subject": 403,
    }
    assert [item.status_code for item in (answer, path, by_key_header, free)] == [200] * 4
    assert answer.json()["slipway-caller"] == "svc-billing"
    assert path.json()["slipway-caller"] == "repo:acme/train"
    assert by_key_header.json()["slipway-caller"] == "svc-billing"
    for seen in (answer, path, by_key_header):
        assert "authorization" not in seen.json()
        assert "x-api-key" not in seen.json()
    assert free.json()["authorization"] == "Bearer opaque"
    assert _accepted(gateway.store) == ("True", "Policy has been accepted.")


def _without(name: str) -> dict[str, Any]:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "svc-billing", "exp": now + 600}
    return {key: value for key, value in claims.items() if key != name}


def test_a_caller_that_leaves_the_list_is_refused_and_required_claims_hold(
    gateway: Gateway, provider: Provider
) -> None:
    token = provider.token("svc-billing", groups=["models", "staff"])
    fetches = provider.fetches

    gateway.allow(provider, "svc-billing", groups=["models"])
    wait_for("the group is required", lambda: gateway.status(provider.token("svc-billing")) == 403)
    in_group = gateway.status(token)
    in_another = gateway.status(provider.token("svc-billing", groups=["staff"]))
    as_text = gateway.status(provider.token("svc-billing", groups="models"))
    gateway.allow(provider)
    wait_for("nobody is listed", lambda: gateway.status(token) == 403)

    assert (in_group, in_another, as_text) == (200, 403, 403)
    assert fetches >= 1


def test_keys_rotate_at_the_provider_and_its_outage_keeps_known_keys_working(
    gateway: Gateway, provider: Provider
) -> None:
    provider.add_key("second", publish=False, curve=True)
    early = gateway.status(provider.token("svc-billing", "second"))
    provider.published.append("second")
    wait_for(
        "the new key is known",
        lambda: gateway.status(provider.token("svc-billing", "second")) == 200,
    )
    with_old = gateway.status(provider.token("svc-billing"))
    provider.published.remove("first")
    wait_for("the old key is gone", lambda: gateway.status(provider.token("svc-billing")) == 401)

    provider.is_down = True
    before = provider.fetches
    wait_for("it is asked in vain", lambda: provider.fetches >= before + 3)
    while_down = gateway.status(provider.token("svc-billing", "second"))
    gateway.allow(provider, "svc-billing", "svc-search")
    wait_for(
        "callers change meanwhile",
        lambda: gateway.status(provider.token("svc-search", "second")) == 200,
    )

    assert (early, with_old, while_down) == (401, 200, 200)


def test_a_gateway_that_never_got_the_keys_refuses_until_the_provider_answers(
    tmp_path: Path, store: Store, model: Endpoint, provider: Provider
) -> None:
    provider.is_down = True
    port = free_ports.take_one()
    controller = GatewayController(store, data_dir=tmp_path, port=port)
    controller.seed()
    _serve(store, model, "one")
    store.create(HTTP_ROUTE, manifests.route({"one": 100}))
    store.create(SECURITY_POLICY, _policy(provider, ["svc-billing"]))
    controller.reconcile()
    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:
        made = Gateway(controller, store, client, f"http://127.0.0.1:{port}", tmp_path, port)
        wait_for("it asks in vain", lambda: provider.fetches >= 2)
        refused = made.status(provider.token("svc-billing"))
        provider.is_down = False
        wait_for("it is served", lambda: _is_served(made, provider))

    assert refused == 401
