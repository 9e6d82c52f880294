"""The portal's own parts: its queues, its scheduler, and what watches each cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import redis

from fleet.clusters.selectors.clusters import ClusterInfo
from portal import celery_config
from portal.core import heartbeats

_LATE: Final = timedelta(seconds=3 * heartbeats.EVERY_SECONDS)
_WATCH_LATE: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the portal. `tone` is "ok", "bad" or "" for not known; `at` is when it last gave a sign of life."""

    name: str
    status: str
    tone: str
    detail: str
    at: datetime | None


def list_parts(clusters: Sequence[ClusterInfo], now: datetime) -> list[Part]:
    """List the parts, the scheduler first. Without a broker the queues are unreachable, and nothing is raised."""
    try:
        lengths = {queue: heartbeats.count_messages(queue) for queue in celery_config.QUEUES}
        beats = {queue: heartbeats.last(queue) for queue in celery_config.QUEUES}
    except redis.RedisError:
        broker = Part("Broker", "Unreachable", "bad", "Tasks run late until it is back.", None)
        return [broker, *(_watcher(cluster, now) for cluster in clusters)]
    return [
        _scheduler(beats, now),
        *(_queue(queue, beats[queue], lengths[queue], now) for queue in celery_config.QUEUES),
        *(_watcher(cluster, now) for cluster in clusters),
    ]


def _scheduler(beats: Mapping[str, datetime | None], now: datetime) -> Part:
    known = [at for at in beats.values() if at is not None]
    newest = max(known, default=None)
    if newest is None:
        return Part("Scheduler", "Not seen", "bad", "Start beat, and a worker of each queue.", None)
    if now - newest > _LATE:
        return Part("Scheduler", "Late", "bad", "Sweeps do not run. Look at beat's log.", newest)
    return Part("Scheduler", "Running", "ok", "Starts the sweeps that find work.", newest)


def _queue(queue: str, at: datetime | None, waiting: int, now: datetime) -> Part:
    name = f"Queue {queue}"
    messages = "no message waits" if not waiting else f"{waiting} waiting"
    if at is None:
        return Part(name, "Not seen", "bad", f"No worker has answered yet; {messages}.", None)
    if now - at > _LATE:
        return Part(name, "Late", "bad", f"Workers are busy or gone; {messages}.", at)
    return Part(name, "Running", "ok", f"{messages.capitalize()}.", at)


def _watcher(cluster: ClusterInfo, now: datetime) -> Part:
    name, at = f"Watcher of {cluster.name}", cluster.watch_seen_at
    if at is None:
        return Part(name, "Not seen", "bad", "Changes are found by sweeps only.", None)
    if now - at > _WATCH_LATE:
        return Part(name, "Late", "bad", "Changes are found by sweeps only.", at)
    return Part(name, "Running", "ok", "Reports changes as they happen.", at)
