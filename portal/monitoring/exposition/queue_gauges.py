"""The queues of Celery: how many messages wait, and when a heartbeat last came through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import redis
from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from portal import celery_config
from portal.core import heartbeats

_SECONDS: Final = 2.0


def collect() -> Iterator[Metric]:
    messages = GaugeMetricFamily(
        "slipway_queue_messages", "Messages that wait for a worker.", labels=["queue"]
    )
    heard = GaugeMetricFamily(
        "slipway_queue_heartbeat_timestamp_seconds",
        "When a worker of the queue last did what beat sends each 30 seconds; 0: not within a week.",
        labels=["queue"],
    )
    with redis.Redis.from_url(
        settings.SLIPWAY_REDIS_URL, socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
    ) as client:
        for queue in celery_config.QUEUES:
            messages.add_metric([queue], float(client.llen(queue)))
            at = heartbeats.last(queue)
            heard.add_metric([queue], at.timestamp() if at else 0.0)
    yield messages
    yield heard
