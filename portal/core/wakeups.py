"""Wake-ups: hints that work is due. A lost one delays the work by a sweep interval."""

from __future__ import annotations

import logging
import threading

from celery import current_app
from django.db import connections, transaction
from kombu.exceptions import OperationalError

from portal.breaker import NotAsked, valkey

logger = logging.getLogger(__name__)


def wake(task_name: str, *ids: int) -> None:
    """Run the task soon, after the current transaction commits. Broker failures are only logged."""
    transaction.on_commit(lambda: send(task_name, *ids, expires=60))


def run_at_once(task_name: str, *ids: int, within: float) -> None:
    """Run the task here, after the current transaction commits, and wait for it that many seconds at most. For
    what must not wait behind others; a failure is nobody's, so wake something that does the same besides.
    """
    transaction.on_commit(lambda: _run_here(task_name, ids, within))


def _run_here(task_name: str, ids: tuple[int, ...], within: float) -> None:
    worker = threading.Thread(target=_run, args=(task_name, ids), daemon=True)
    worker.start()
    worker.join(within)


def _run(task_name: str, ids: tuple[int, ...]) -> None:
    try:
        current_app.tasks[task_name](*ids)
    finally:
        connections.close_all()


def send(task_name: str, *ids: int, expires: float) -> None:
    """Send a task now; nobody runs it after `expires` seconds. Broker failures are only logged."""
    task = current_app.tasks[task_name]
    try:
        valkey.ask(lambda: task.apply_async(args=ids, expires=expires, retry=False))
    except NotAsked:
        return
    except OperationalError as error:
        logger.warning(
            "wake-up %s%s was not sent: %s; the sweep will run it", task_name, ids, error
        )
