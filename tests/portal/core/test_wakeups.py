from __future__ import annotations

import logging

import pytest
from django.db import transaction

from portal.celery import app
from portal.core.wakeups import wake


@pytest.mark.django_db(transaction=True)
def test_a_wake_up_is_sent_only_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[object, ...]] = []
    task = app.tasks["deployments.apply_change"]
    monkeypatch.setattr(task, "apply_async", lambda args, **_: sent.append(args))

    with transaction.atomic():
        wake("deployments.apply_change", 7)
        assert sent == []

    assert sent == [(7,)]


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_down_is_logged_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app.conf, "broker_url", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(app, "_pool", None)
    monkeypatch.setattr(app.amqp, "_producer_pool", None)

    with caplog.at_level(logging.WARNING):
        wake("deployments.apply_change", 7)

    assert "the sweep will run it" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_misspelt_task_fails_loudly() -> None:
    with pytest.raises(app.tasks.NotRegistered):
        wake("deployments.aply_change")
