"""Tokens of an EKS cluster that end early, on a real API server; only AWS itself is played."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine

from fleet.kube.domain import resource_types
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import Refused
from fleet.kube.gateways import eks
from fleet.kube.gateways.client import HttpKubeClient
from tests.localcluster.conftest import LocalApi

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "renewal"}}


class Signer:
    """In the place of the STS signature: the next of `tokens`, the last one again and again."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        return self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel("2026-03-01T12:00:00Z", tick=False) as traveller:
        yield traveller


def client_with(signer: Signer, api: LocalApi, monkeypatch: pytest.MonkeyPatch) -> HttpKubeClient:
    there = eks.EksCluster(api.base_url, str(api.ca_path), "1.34")
    monkeypatch.setattr(eks, "describe", lambda *_: there)
    monkeypatch.setattr(eks.TokenCache, "_make", lambda _self: signer())
    return HttpKubeClient(Connection("prod", "eks", eks_name="prod", region="eu-west-1"))


def test_a_token_that_expired_early_is_made_anew_within_the_same_call(
    live_api: LocalApi, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = Signer(live_api.token, "expired", live_api.token)
    client = client_with(signer, live_api, monkeypatch)
    client.apply(NAMESPACE)
    clock.shift(eks.TOKEN_LIFE)
    with pytest.raises(Refused):
        client.list_all(resource_types.POD)
    clock.shift(timedelta(seconds=11))

    client.apply(NAMESPACE)
    client.list_all(resource_types.POD)

    assert signer.made == 3


def test_a_fresh_token_that_is_refused_is_not_made_again_and_again(
    live_api: LocalApi, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = Signer("not allowed in")
    client = client_with(signer, live_api, monkeypatch)

    for _ in range(5):
        with pytest.raises(Refused):
            client.list_all(resource_types.POD)

    assert signer.made == 1


def test_a_watch_with_an_expired_token_begins_again_with_a_new_one(
    live_api: LocalApi, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = Signer("expired", live_api.token)
    client = client_with(signer, live_api, monkeypatch)
    client._transport._auth()
    clock.shift(timedelta(minutes=10))
    with pytest.raises(Refused):
        next(iter(client.watch(resource_types.POD, resource_version="0", seconds=1)))

    client.list_all(resource_types.POD)

    assert signer.made == 2
