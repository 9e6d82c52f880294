"""A server that hangs costs one time-out, not one for each request."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from portal.accounts import sign_ins
from portal.api.throttling import caller_limit
from portal.breaker import Breaker, NotAsked
from portal.celery import app
from portal.core import cache, counters, rate_limits, wakeups


class Time:
    now = 1000.0


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr("portal.breaker.time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def _fail() -> None:
    raise NoAnswer("no answer")


def test_after_a_failure_nobody_asks_until_one_tries(at: Time) -> None:
    valkey, asked = Breaker(seconds=10), []
    with pytest.raises(NoAnswer):
        valkey.ask(_fail)

    for _ in range(3):
        with pytest.raises(NotAsked):
            valkey.ask(lambda: asked.append("too early"))
    at.now += 10.0
    with pytest.raises(NoAnswer):
        valkey.ask(_fail)
    with pytest.raises(NotAsked):
        valkey.ask(lambda: asked.append("too early"))
    at.now += 10.0
    assert valkey.ask(lambda: "answer") == "answer"
    assert valkey.ask(lambda: "another") == "another"
    assert asked == []


def test_while_one_tries_the_others_do_not_wait(at: Time) -> None:
    valkey, tries, release = Breaker(seconds=10), threading.Event(), threading.Event()
    with pytest.raises(NoAnswer):
        valkey.ask(_fail)
    at.now += 10.0

    def hang() -> None:
        tries.set()
        assert release.wait(30)

    one = threading.Thread(target=valkey.ask, args=(hang,))
    one.start()
    assert tries.wait(30)
    with pytest.raises(NotAsked):
        valkey.ask(lambda: None)
    release.set()
    one.join()

    assert valkey.ask(lambda: "answer") == "answer"


def test_an_answer_that_refuses_is_an_answer() -> None:
    """A wrong command or a full memory takes no time, and says nothing of the next one."""
    valkey = Breaker()

    def refuse() -> None:
        raise ResponseError("OOM command not allowed")

    for _ in range(2):
        with pytest.raises(ResponseError):
            valkey.ask(refuse)
    assert valkey.ask(lambda: 1) == 1


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[list[float]]:
    """A server that takes connections and says nothing; the list has when each began."""
    began: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port, kept = server.getsockname()[1], []

        def take() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return
                began.append(time.monotonic())

        threading.Thread(target=take, daemon=True).start()
        url = f"redis://127.0.0.1:{port}/0"
        short = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2}
        settings.CACHES = {
            "default": {**settings.CACHES["default"], "LOCATION": url, "OPTIONS": short}
        }
        settings.SLIPWAY_REDIS_URL = url
        monkeypatch.setattr(app.conf, "broker_url", url)
        monkeypatch.setattr(app, "_pool", None)
        monkeypatch.setattr(app.amqp, "_producer_pool", None)
        yield began
        server.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()


# Everything that a request asks of Valkey. None of it may fail the request, or wait again.
_USES: dict[str, Callable[[], object]] = {
    "count": lambda: rate_limits.count(caller_limit(), "somebody"),
    "undo": lambda: rate_limits.undo(sign_ins.OF_NAME, "somebody"),
    "reset": lambda: rate_limits.reset(sign_ins.OF_NAME, "somebody"),
    "counters": lambda: counters.increase(counters.CLUSTER_ERRORS, "prod", "timeout"),
    "shared parts of pages": lambda: cache.recent(("key",), lambda: "made", seconds=5),
    "wake-ups": lambda: wakeups.send("deployments.apply_change", 7, expires=60),
}


@pytest.mark.parametrize("first", _USES)
def test_only_the_first_use_waits(first: str, hanging: list[float]) -> None:
    _USES[first]()
    waited = len(hanging)

    for use in _USES.values():
        use()

    assert len(hanging) == waited == 1


@pytest.mark.django_db
def test_requests_without_a_token_are_answered_while_it_hangs(hanging: list[float]) -> None:
    for _ in range(5):
        assert Client().get("/api/v1/deployments").status_code == 401
        assert Client().post("/sign-in", {"username": "x", "password": "y"}).status_code == 200

    assert len(hanging) == 1
