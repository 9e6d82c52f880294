"""Wake-ups: hints that work is due. A lost one delays the work by a sweep interval."""

from __future__ import annotations

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from portal.core.breaker import NotAsked, valkey

logger = logging.getLogger(__name__)


def wake(task_name: str, *ids: int) -> None:
    """Run the task soon, after the current transaction commits. Broker failures are only logged."""
    transaction.on_commit(lambda: send(task_name, *ids, expires=60))


def send(task_name: str, *ids: int, expires: float) -> None:
    """Now; nobody runs it after `expires` seconds. Broker failures are only logged."""
    task = current_app.tasks[task_name]
    try:
        valkey.ask(lambda: task.apply_async(args=ids, expires=expires, retry=False))
    except NotAsked:
        return
    except OperationalError as error:
        logger.warning(
            "wake-up %s%s was not sent: %s; the sweep will run it", task_name, ids, error
        )
