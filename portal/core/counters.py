"""Counters of all processes, kept in Valkey. They begin anew when it loses its memory, as counters of Prometheus may.

What is counted never depends on it: without Valkey nothing is counted.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from redis.exceptions import RedisError

from portal.breaker import NotAsked
from portal.core import cache

logger = logging.getLogger(__name__)

# Failed requests to API servers, by cluster and kind of error.
CLUSTER_ERRORS: Final = "cluster_errors"
_PREFIX: Final = "counters:"


def increase(counter: str, *labels: str) -> None:
    try:
        cache.increase_field(_PREFIX + counter, json.dumps(labels))
    except NotAsked:
        return
    except RedisError as error:
        logger.warning("%s %s was not counted: %s", counter, labels, error)


def read(counter: str) -> dict[tuple[str, ...], int]:
    """Return the counts by labels. Raises RedisError."""
    fields = cache.read_fields(_PREFIX + counter)
    return {tuple(json.loads(labels)): count for labels, count in sorted(fields.items())}
