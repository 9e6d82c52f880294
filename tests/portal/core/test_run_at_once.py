"""What must not wait behind others runs here, after the commit, and holds nobody up for long."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from celery import current_app
from django.db import transaction

from portal.core import wakeups

pytestmark = pytest.mark.django_db
_TASK = "tests.at_once"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def task(pk: int) -> None:
        seen.append((pk, threading.current_thread() is threading.main_thread()))

    monkeypatch.setitem(current_app.tasks, _TASK, task)
    return seen


def test_it_runs_after_the_commit_and_before_the_answer(
    ran: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        wakeups.run_at_once(_TASK, 7, within=10)
        before = list(ran)

    assert (before, ran) == ([], [(7, False)])


def _give_up() -> None:
    with transaction.atomic():
        wakeups.run_at_once(_TASK, 7, within=10)
        transaction.set_rollback(True)


def test_what_is_rolled_back_does_not_run(
    ran: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        _give_up()

    assert ran == []


def test_one_that_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    released = threading.Event()
    monkeypatch.setitem(current_app.tasks, _TASK, lambda: released.wait(60))

    with django_capture_on_commit_callbacks(execute=True):
        wakeups.run_at_once(_TASK, within=0.01)

    assert not released.is_set()
    released.set()
