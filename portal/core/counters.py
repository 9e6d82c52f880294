"""Counters of all processes, kept in Valkey. They begin anew when it loses its memory, as counters of Prometheus may.

What is counted never depends on it: without Valkey nothing is counted.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from django.core.cache import cache
from redis.exceptions import RedisError

from portal.breaker import NotAsked

logger = logging.getLogger(__name__)

# Failed requests to API servers, by cluster and kind of error.
CLUSTER_ERRORS: Final = "cluster_errors"
_PREFIX: Final = "counters:"


def increase(counter: str, *labels: str) -> None:
    store: Any = cache
    try:
        store.increase_field(_PREFIX + counter, json.dumps(labels))
    except NotAsked:
        return
    except RedisError as error:
        logger.warning("%s %s was not counted: %s", counter, labels, error)


def read(counter: str) -> dict[tuple[str, ...], int]:
    """By labels. Raises RedisError."""
    store: Any = cache
    fields: dict[str, int] = store.read_fields(_PREFIX + counter)
    return {tuple(json.loads(labels)): count for labels, count in sorted(fields.items())}
