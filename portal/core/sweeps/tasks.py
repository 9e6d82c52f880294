"""Sent by beat to each queue that has looks."""

from __future__ import annotations

from celery import shared_task

from portal import celery_config
from portal.core.sweeps import looks


@shared_task(name="sweeps.look", time_limit=30)
def look(queue: str) -> None:
    seconds, task_names = celery_config.LOOKS[queue]
    # Two looks at most wait for a full queue.
    looks.send_due(task_names, expires=seconds * 2)
