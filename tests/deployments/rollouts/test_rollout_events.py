"""A notebook waits on what happens to a rollout."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection
from rest_framework.test import APIClient

from deployments.models import Rollout, RolloutEvent
from deployments.rollouts.selectors.events import EventCursor
from deployments.rollouts.services import actions
from portal.accounts import tokens
from portal.accounts.models import User
from portal.api import streams
from slipway_client import Client, types
from tests.deployments import canaries
from tests.deployments.world import World
from tests.waiting import PATIENCE_SECONDS

SSE: dict[str, Any] = {"HTTP_ACCEPT": "text/event-stream"}


@pytest.fixture
def rollout(world: World) -> Rollout:
    return canaries.start(world)[1]


def _client(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def _as_django(headers: httpx.Headers) -> dict[str, Any]:
    return {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}


def _url(rollout: Rollout) -> str:
    return f"/api/v1/rollouts/{rollout.pk}/events"


def _stream(user: User, rollout: Rollout, **options: Any) -> Any:
    return _client(user).get(_url(rollout), {"wait": 0}, **SSE, **options)


def _messages(answer: Any) -> list[dict[str, Any]]:
    text = b"".join(answer.streaming_content).decode()
    return list(_parse(text))


def _parse(text: str) -> Iterator[dict[str, Any]]:
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" in fields:
            yield {**fields, "data": json.loads(fields["data"])}


def test_a_stream_sends_events_and_the_state(world: World, rollout: Rollout) -> None:
    answer = _stream(world.viewer, rollout)

    assert answer["Content-Type"] == "text/event-stream; charset=utf-8"
    messages = _messages(answer)
    kept = list(RolloutEvent.objects.order_by("id").values_list("id", "message"))
    assert [
        (int(message["id"]), message["data"]["message"])
        for message in messages
        if message["event"] == "event"
    ] == kept
    state = messages[-1]
    assert (state["event"], state["data"]["phase"]) == ("state", "running")
    assert "id" not in state


def test_a_stream_resumes_after_the_last_received_event(world: World, rollout: Rollout) -> None:
    last = RolloutEvent.objects.order_by("id").last()
    assert last is not None
    actions.pause(actor=world.lead, rollout_id=rollout.pk, reason="lunch")

    messages = _messages(_stream(world.lead, rollout, HTTP_LAST_EVENT_ID=str(last.pk)))

    assert [message["data"]["message"] for message in messages if message["event"] == "event"] == [
        "paused: lunch"
    ]


def test_a_stream_ends_with_the_rollout_and_is_not_opened_again(
    world: World, rollout: Rollout
) -> None:
    deployment = rollout.deployment
    actions.abort(actor=world.lead, rollout_id=rollout.pk, reason="")
    for _ in range(6):
        world.clock.move(20)
        world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == "aborted"

    messages = _messages(_stream(world.lead, rollout))
    last = RolloutEvent.objects.order_by("id").last()
    assert last is not None
    again = _stream(world.lead, rollout, HTTP_LAST_EVENT_ID=str(last.pk))

    assert messages[-1] == {"event": "end", "data": {"rollout_id": rollout.pk}}
    assert again.status_code == 204


def test_one_response_has_the_same_and_how_to_continue(world: World, rollout: Rollout) -> None:
    client = _client(world.viewer)

    first = client.get(_url(rollout)).json()
    second = client.get(_url(rollout), {"after": first["after"]}).json()

    assert len(first["events"]) == RolloutEvent.objects.count()
    assert first["rollout"]["phase"] == "running"
    assert (second["events"], second["after"]) == ([], first["after"])
    assert second["is_final"] is False


def test_a_stream_beyond_the_limit_ends_at_once_with_a_retry_time(
    world: World, rollout: Rollout
) -> None:
    slots = [streams.slot() for _ in range(streams.MAX_STREAMS)]
    assert [slot.__enter__() for slot in slots] == [True] * streams.MAX_STREAMS

    answer: Any = _client(world.lead).get(_url(rollout), {"wait": 55}, **SSE)
    text = b"".join(answer.streaming_content).decode()

    for slot in slots:
        slot.__exit__(None, None, None)
    assert text.startswith("retry: 5000\n\n")
    assert "event: state" in text
    with streams.slot() as has_slot:
        assert has_slot


def test_a_stranger_gets_a_problem_and_bad_questions_too(world: World, rollout: Rollout) -> None:
    stranger = _stream(world.stranger, rollout)
    client = _client(world.lead)

    assert (stranger.status_code, json.loads(stranger.content)["code"]) == (404, "not_found")
    for question in ({"wait": 56}, {"after": -1}, {"after": 2**63}):
        assert client.get(_url(rollout), question, **SSE).status_code == 422


def test_the_notebook_follows_a_rollout_to_its_end(
    world: World, rollout: Rollout, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own code with the real client, on the real application: the second stream is cut, the next
    one goes on where it ended.
    """
    notebook = json.loads(Path("docs/notebooks/wait-for-rollout.ipynb").read_text())
    source = next(
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and "rollouts.watch" in "".join(cell["source"])
    )
    portal = _client(world.lead)
    failures = [httpx.ConnectError("the portal restarts")]
    streams: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        streams.append(request.headers["Last-Event-ID"])
        if len(streams) == 2:
            raise failures.pop()
        if len(streams) == 3:
            actions.abort(actor=world.lead, rollout_id=rollout.pk, reason="")
        world.clock.move(20)
        world.reconcile_now(rollout.deployment)
        assert len(streams) < 60
        page = portal.get(request.url.path, {"wait": 0}, **_as_django(request.headers))
        return httpx.Response(page.status_code, content=page.getvalue())

    transport = httpx.MockTransport(answer)
    slipway = Client("http://testserver", "of the test client", transport=transport)
    pauses: list[float] = []
    slipway._connection.sleep = pauses.append

    exec(source, {"slipway": slipway, "rollout_id": rollout.pk, "RolloutEvent": types.RolloutEvent})

    kept = list(RolloutEvent.objects.order_by("id").values_list("message", flat=True))
    printed = [line[9:] for line in capsys.readouterr().out.splitlines() if line[:1].isdigit()]
    assert len(printed) == len(kept)
    assert all(line.startswith(message) for line, message in zip(printed, kept, strict=True))
    assert pauses[:3] == [1.0, 5.0, 1.0]
    assert streams[0] == ""
    assert streams[2] == streams[1] != ""


@pytest.mark.django_db
def test_events_never_come_with_an_older_state(
    world: World, rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = RolloutEvent.objects.order_by("id").last()
    assert last is not None
    read_events = EventCursor._new_events

    def pause_then_read(cursor: EventCursor) -> tuple[RolloutEvent, ...]:
        actions.pause(actor=world.lead, rollout_id=rollout.pk, reason="now")
        return read_events(cursor)

    monkeypatch.setattr(EventCursor, "_new_events", pause_then_read)
    news = EventCursor(actor=world.viewer, rollout_id=rollout.pk, after=last.pk).poll()

    assert [event.message for event in news.events] == ["paused: now"]
    assert news.view is not None
    assert news.view.rollout.phase == "paused"


@pytest.mark.django_db(transaction=True)
def test_an_answer_waits_until_something_happens(world: World, rollout: Rollout) -> None:
    last = RolloutEvent.objects.order_by("id").last()
    assert last is not None
    body: dict[str, Any] = {}

    def fetch() -> None:
        body.update(_client(world.viewer).get(_url(rollout), {"after": last.pk, "wait": 20}).json())
        connection.close()

    waiting = threading.Thread(target=fetch)
    waiting.start()
    actions.pause(actor=world.lead, rollout_id=rollout.pk, reason="check")
    waiting.join(timeout=PATIENCE_SECONDS)

    assert [event["message"] for event in body["events"]] == ["paused: check"]
    assert body["rollout"]["phase"] == "paused"


@pytest.mark.django_db(transaction=True)
def test_a_notebook_waits_on_a_real_server_and_receives_the_abort(
    world: World, rollout: Rollout, live_server: Any
) -> None:
    """A socket, a token, an open stream: what happens while it is open comes through it."""
    token = tokens.create(actor=world.viewer, name="notebook", days=1).plain
    client = httpx.Client(
        base_url=f"{live_server.url}/api/v1/",
        headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"},
        timeout=30,
    )
    lines: list[str] = []

    with client, client.stream("GET", f"rollouts/{rollout.pk}/events?wait=20") as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if not line.startswith("data: "):
                continue
            data = json.loads(line.removeprefix("data: "))
            if "guards" in data and not lines:
                # It has shown how things stand; now someone aborts.
                lines.append(data["phase"])
                actions.abort(actor=world.member, rollout_id=rollout.pk, reason="by hand")
            elif lines and "message" in data:
                lines.append(data["message"])
                break
        refused = client.get("rollouts/0/events?wait=0")

    assert lines == ["running", "aborted: by hand"]
    assert refused.status_code == 404
