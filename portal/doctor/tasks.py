"""Sent by beat to each queue."""

from __future__ import annotations

from celery import shared_task

from portal.core import heartbeats


@shared_task(name="doctor.heartbeat", time_limit=10)
def heartbeat(queue: str) -> None:
    heartbeats.beat(queue)
