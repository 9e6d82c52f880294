"""The metrics of the portal's own work from the database and the broker, read at each scrape.

Every web process gives the same answer, so rules take the maximum of it. A part that cannot be read leaves its
gauges out and says so in slipway_collector_success; the other parts are there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from django.db import DatabaseError
from prometheus_client.core import GaugeMetricFamily, Metric
from redis.exceptions import RedisError

from portal.monitoring.exposition import (
    cluster_gauges,
    queue_gauges,
    request_gauges,
    row_gauges,
    seal_gauges,
)

logger = logging.getLogger(__name__)

PARTS: Final[Mapping[str, Callable[[], Iterator[Metric]]]] = {
    "queues": queue_gauges.collect,
    "rows": row_gauges.collect,
    "requests": request_gauges.collect,
    "clusters": cluster_gauges.collect,
    "cluster-errors": cluster_gauges.collect_errors,
    "seals": seal_gauges.collect,
}


class StateCollector:
    def collect(self) -> Iterator[Metric]:
        success = GaugeMetricFamily(
            "slipway_collector_success",
            "1: this part of the answer could be read.",
            labels=["collector"],
        )
        for name, part in PARTS.items():
            families = _read(name, part)
            success.add_metric([name], float(families is not None))
            yield from families or ()
        yield success


def _read(name: str, part: Callable[[], Iterator[Metric]]) -> list[Metric] | None:
    """Read all of a part or None: half of it would look like zeros elsewhere."""
    try:
        return list(part())
    except (DatabaseError, RedisError, OSError) as error:
        logger.warning("metrics of %s could not be read: %s", name, error)
        return None
