"""Requests of the client: refusals with the field and the fix, retries, pages, the token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from deployments.changes.services import presets
from deployments.models import ChangeRequest, Model
from slipway_client import (
    Client,
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidInput,
    InvalidRequest,
    NotFound,
    RetryPolicy,
    ServerError,
    TokenRefused,
    TooManyRequests,
    UnexpectedAnswer,
)
from slipway_client.connection import Connection
from tests.client.conftest import PORTAL, ClientOf, portal_transport
from tests.deployments.world import World

SPEC = {
    "engine": "kserve-triton",
    "instance_type": "g5.xlarge",
    "cpu": "2",
    "memory": "8Gi",
    "network": {"access": "open"},
}


class Failing(httpx.BaseTransport):
    """Fails the first requests in the given ways, `after` they had their effect or before."""

    def __init__(self, *failures: Exception | httpx.Response, after: bool = False) -> None:
        self.failures = list(failures)
        self.requests: list[httpx.Request] = []
        self._is_after = after
        self._portal = portal_transport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if not self.failures:
            return self._portal.handle_request(request)
        if self._is_after:
            self._portal.handle_request(request).close()
        failure = self.failures.pop(0)
        if isinstance(failure, Exception):
            raise failure
        return failure


def test_a_refusal_names_the_field_and_the_fix(world: World, client_of: ClientOf) -> None:
    client = client_of(world.member)

    with pytest.raises(InvalidRequest) as refusal:
        client.deployments.request(
            version=world.version1.pk,
            cluster=world.cluster_id,
            name="detector",
            spec={**SPEC, "memory": "a lot"},
        )

    assert (refusal.value.status, refusal.value.code) == (422, "invalid")
    assert list(refusal.value.fields) == ["spec.memory"]
    assert "8Gi" in str(refusal.value)
    assert not ChangeRequest.objects.exists()


def test_each_kind_of_refusal_has_a_class_of_its_own(world: World, client_of: ClientOf) -> None:
    change = client_of(world.member).deployments.request(
        version=world.version1.pk, cluster=world.cluster_id, name="detector", spec=SPEC
    )

    with pytest.raises(NotFound):
        client_of(world.stranger).changes.get(change.id)
    with pytest.raises(Forbidden):
        client_of(world.viewer).changes.approve(change)
    with pytest.raises(TokenRefused):
        Client(PORTAL, "slp_wrong", transport=portal_transport()).me()
    client_of(world.member).changes.withdraw(change.id)
    with pytest.raises(Conflict):
        client_of(world.lead).changes.approve(change)


def test_a_rejected_request_is_resubmitted_with_what_differs(
    world: World, client_of: ClientOf
) -> None:
    client = client_of(world.member)
    first = client.deployments.request(
        version=world.version1.pk,
        cluster=world.cluster_id,
        name="street",
        spec={**SPEC, "memory": "9Gi"},
        environment="staging",
        comment="for the yard",
    )
    client_of(world.lead).changes.reject(first.id, comment="less memory is enough")

    again = client.deployments.resubmit(client.changes.get(first.id), spec={"memory": "8Gi"})

    assert (again.deployment, again.environment, again.comment) == (
        "street",
        "staging",
        "for the yard",
    )
    assert again.revision is not None
    assert again.revision.spec["memory"] == "8Gi"
    assert again.revision.spec["network"] == first.raw["revision"]["spec"]["network"]
    assert ChangeRequest.objects.get(pk=again.id).replaces_id == first.id


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        httpx.Response(503, json={"detail": "busy"}),
        httpx.Response(429, json={"detail": "slow down"}, headers={"Retry-After": "0"}),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_transient_failures_are_retried(failure: Any, world: World, client_of: ClientOf) -> None:
    transport = Failing(failure)

    assert client_of(world.member, transport).me().username == "member"
    assert len(transport.requests) == 2


def test_a_repeated_request_has_one_effect(world: World, client_of: ClientOf) -> None:
    """The answer was lost: the portal recognises the repetition by its Idempotency-Key."""
    transport = Failing(httpx.ReadTimeout("lost"), httpx.ReadTimeout("lost"), after=True)

    model = client_of(world.member, transport).models.create("vision/new-model")

    assert len(transport.requests) == 3
    assert Model.objects.filter(name="new-model").count() == 1
    assert str(model) == "vision/new-model"


def test_no_answer_ends_after_all_attempts(world: World, client_of: ClientOf) -> None:
    transport = Failing(*[httpx.ConnectError("refused")] * 9)

    with pytest.raises(ConnectionFailed, match=r"testserver: refused \(5 attempts\)"):
        client_of(world.member, transport).me()

    assert len(transport.requests) == 5


def test_a_refusal_is_not_repeated(world: World, client_of: ClientOf) -> None:
    transport = Failing(httpx.Response(500, json={"detail": "a bug"}))

    with pytest.raises(ServerError, match="a bug"):
        client_of(world.member, transport).me()

    assert len(transport.requests) == 1


def connection_with(
    answer: Callable[[httpx.Request], httpx.Response], pauses: list[float]
) -> Connection:
    return Connection(
        "https://portal.example",
        "slp_secret",
        retry=RetryPolicy(attempts=3),
        transport=httpx.MockTransport(answer),
        sleep=pauses.append,
    )


def test_pauses_grow_and_follow_retry_after() -> None:
    pauses: list[float] = []
    slow = connection_with(lambda _: httpx.Response(503, json={"detail": "busy"}), pauses)
    with pytest.raises(ServerError):
        slow.get("me")
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0

    limited = connection_with(
        lambda _: httpx.Response(429, json={"detail": "slow"}, headers={"Retry-After": "7"}),
        pauses,
    )
    with pytest.raises(TooManyRequests):
        limited.get("me")
    assert pauses[2:] == [7.0, 7.0]


def test_an_address_without_the_api_says_so() -> None:
    page = connection_with(
        lambda _: httpx.Response(302, headers={"Location": "https://sso.example/in"}, text=""), []
    )

    with pytest.raises(UnexpectedAnswer, match=r"302 \(to https://sso.example/in\)"):
        page.get("me")


def test_the_token_follows_no_link_to_another_host() -> None:
    hosts: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        is_first = "cursor" not in request.url.params
        following = "http://elsewhere.example/api/v1/models?cursor=2" if is_first else None
        return httpx.Response(200, json={"results": [len(hosts)], "next": following})

    connection = connection_with(answer, [])

    assert list(connection.pages("models")) == [1, 2]
    assert hosts == ["portal.example", "portal.example"]


def test_lists_go_over_all_pages(world: World, client_of: ClientOf) -> None:
    client = client_of(world.member)
    for number in range(60):
        client.models.create(f"vision/m{number}")

    names = {model.name for model in client.models.list(team="vision")}

    assert {f"m{number}" for number in range(60)} <= names


@pytest.mark.parametrize("name", ["detector", "vision/", "vision/detector/x", "vision/detector:"])
def test_a_name_that_is_none_is_refused_before_it_is_sent(name: str) -> None:
    connection = Client("https://portal.example", "slp_x", transport=httpx.MockTransport(refuse))

    with pytest.raises(InvalidInput, match="team/model"):
        connection.versions.get(name)


def refuse(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"{request.url} was sent")


def test_the_client_never_shows_the_token() -> None:
    client = Client("https://portal.example", "slp_secret", transport=httpx.MockTransport(refuse))

    assert "slp_secret" not in repr(client)


def test_a_deployment_starts_from_a_preset_of_the_team(world: World, client_of: ClientOf) -> None:
    made = presets.save(
        actor=world.lead, team=world.team, name="Big", settings={"memory": "12Gi", "cpu": "3"}
    )
    client = client_of(world.member)
    [preset] = client.deployments.presets("vision")
    assert (str(preset), preset.team, preset.id) == ("Big", "vision", made.pk)
    spec = {name: value for name, value in SPEC.items() if name != "cpu"}

    client.deployments.request(
        version=world.version1.pk,
        cluster=world.cluster_id,
        name="street",
        spec=spec,
        preset=preset.id,
    )

    revision = ChangeRequest.objects.get().revision
    assert revision is not None
    assert (revision.spec["memory"], revision.spec["cpu"]) == ("8Gi", "3")
