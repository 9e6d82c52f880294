"""Workers of each queue, beat, and the watcher of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from celery import current_app

from fleet.clusters.selectors import clusters
from portal import celery_config
from portal.core import clock, heartbeats
from portal.core.definitions.counts import format_count
from portal.doctor.checks.broker import connect
from portal.doctor.lines import Line, ok, report_failed
from portal.doctor.registry import check

_AREA: Final = "workers"
_BROKER: Final = "Fix the broker first."
_SECONDS: Final = 2.0


@check(_AREA, "Queues", fix=_BROKER)
def queues() -> Iterator[Line]:
    """A queue is well when beat's heartbeat came through it recently: then beat lives and a worker keeps up."""
    workers = _workers()
    lates = {queue: _late(queue) for queue in celery_config.QUEUES}
    with connect() as client:
        waiting = {queue: int(client.llen(queue)) for queue in celery_config.QUEUES}
    if all(lates.values()) and any(workers.values()):
        yield report_failed(
            "Beat",
            "no queue got a heartbeat recently",
            "Start `celery -A portal.beat beat`, once.",
        )
    elif not all(lates.values()):
        yield ok("Beat", "its heartbeats arrive")
    for queue in celery_config.QUEUES:
        yield _line(queue, workers[queue], lates[queue], waiting[queue])


@check(_AREA, "Watcher", fix="Fix the database first.")
def watcher() -> Iterator[Line]:
    for cluster in clusters.list_clusters():
        seen = cluster.watch_seen_at
        if not cluster.is_watched(clock.now()):
            since = f"since {seen:%Y-%m-%d %H:%M} UTC" if seen else "yet"
            yield report_failed(
                f"Watcher of {cluster.name}",
                f"nothing was reported {since}: changes are noticed by sweeps only",
                "Start `manage.py watch_clusters`; when it runs, read its log and test the cluster.",
            )
        else:
            yield ok(f"Watcher of {cluster.name}", "reports changes")


def _line(queue: str, workers: int, late: str, waiting: int) -> Line:
    name = f"Queue {queue}"
    messages = f"{format_count(waiting, 'message')} {'waits' if waiting == 1 else 'wait'}"
    if not workers:
        fix = f"Start `celery -A portal.celery worker --queues {queue}`."
        return report_failed(name, f"no worker; {messages}", fix)
    present = format_count(workers, "worker")
    if late:
        fix = "Add workers (or processes) of this queue, and read their logs for tasks that hang."
        return report_failed(name, f"{late}; {present}, {messages}", fix)
    return ok(name, f"{present}, {messages}")


def _workers() -> dict[str, int]:
    """Return how many workers of each queue answer."""
    inspect = current_app.control.inspect(timeout=_SECONDS)
    answers = inspect.active_queues() or {}
    consumed = [queue["name"] for queues in answers.values() for queue in queues]
    return {queue: consumed.count(queue) for queue in celery_config.QUEUES}


def _late(queue: str) -> str:
    """Return why a queue is late. Empty if it is not."""
    at = heartbeats.last(queue)
    if at is None:
        return "no heartbeat came through yet"
    age = clock.now() - at
    return (
        f"the last heartbeat came {age.total_seconds():.0f} s ago"
        if age > heartbeats.LATE_AFTER
        else ""
    )
