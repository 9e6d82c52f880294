"""One message for each queue looks for work of its sweeps; those that have some are sent as beat would send them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.db import connection
from kombu.exceptions import OperationalError

from deployments.models import Import, ModelVersion
from fleet.models import FleetAction
from portal import celery_config
from portal.celery import app
from portal.core import leases
from portal.core.leases import Leased
from portal.core.sweeps import looks
from portal.core.sweeps.tasks import look

NAMES = [name for _, names in celery_config.LOOKS.values() for name in names]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Name and expiry of each sweep that a look sends."""
    calls: list[tuple[str, float]] = []
    for name in NAMES:
        task = app.tasks[name]

        def note(args: Any = (), name: str = name, **options: Any) -> None:
            assert (tuple(args), options["retry"]) == ((), False)
            calls.append((name, options["expires"]))

        monkeypatch.setattr(task, "apply_async", note)
    return calls


def test_each_sweep_is_looked_for_in_its_own_queue_and_sent_by_nothing_else() -> None:
    scheduled = {entry["task"] for entry in celery_config.beat_schedule.values()}

    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) == set(looks.list_registered())
    assert not scheduled & set(NAMES)
    for queue, (_, names) in celery_config.LOOKS.items():
        routed = {app.amqp.router.route({}, name)["queue"].name for name in names}
        assert routed == {queue}


def test_beat_sends_a_look_to_each_queue_that_has_one() -> None:
    entries = [e for e in celery_config.beat_schedule.values() if e["task"] == "sweeps.look"]

    assert [entry["args"][0] for entry in entries] == list(celery_config.LOOKS)
    for entry in entries:
        seconds, _ = celery_config.LOOKS[entry["args"][0]]
        queue = entry["options"]["queue"]
        # Sending one puts the queue itself in the place of its name.
        assert getattr(queue, "name", queue) == entry["args"][0]
        assert (entry["schedule"], entry["options"]["expires"]) == (seconds, seconds * 0.9)


@pytest.mark.django_db
@pytest.mark.parametrize("queue", celery_config.LOOKS)
def test_a_look_sends_nothing_where_nothing_is_due_and_takes_a_query_or_two_for_each(
    queue: str, sent: list[tuple[str, float]], django_assert_max_num_queries: Any
) -> None:
    _, names = celery_config.LOOKS[queue]

    with django_assert_max_num_queries(len(names) + 2):
        look(queue)

    assert sent == []


@pytest.mark.django_db
def test_a_sweep_that_fails_to_be_looked_for_is_sent_and_so_are_the_others(
    sent: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail() -> bool:
        raise RuntimeError("no such table")

    monkeypatch.setitem(looks._looks, "deployments.sweep_rollouts", fail)
    monkeypatch.setitem(looks._looks, "fleet.sweep_actions", lambda: True)

    with caplog.at_level(logging.ERROR):
        look("delivery")

    assert sent == [("deployments.sweep_rollouts", 6), ("fleet.sweep_actions", 6)]
    assert "could not look for work of deployments.sweep_rollouts" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_look_whose_table_is_gone_leaves_the_connection_to_the_next(
    sent: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM no_such_table")
        return False

    monkeypatch.setitem(looks._looks, "deployments.sweep_deployments", fail)

    assert looks.send_due(celery_config.LOOKS["delivery"][1], expires=6) == [
        "deployments.sweep_deployments"
    ]


@pytest.mark.django_db
def test_rows_that_are_due_are_work_and_leased_or_later_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[type[Leased]] = []

    def due(model: type[Leased], *, limit: int) -> list[int]:
        asked.append(model)
        return [7] if model is FleetAction else []

    monkeypatch.setattr(leases, "due", due)

    assert looks._looks["fleet.sweep_actions"]()
    assert not looks._looks["deployments.sweep_imports"]()
    assert not looks._looks["deployments.sweep_versions"]()
    assert asked == [FleetAction, Import, ModelVersion]


def test_a_broker_that_is_away_only_delays(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def refuse(**_: Any) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(app.tasks["fleet.sweep_actions"], "apply_async", refuse)
    monkeypatch.setitem(looks._looks, "fleet.sweep_actions", lambda: True)

    assert looks.send_due(["fleet.sweep_actions"], expires=6) == ["fleet.sweep_actions"]
    assert "fleet.sweep_actions() was not sent" in caplog.text
