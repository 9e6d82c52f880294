"""Who wants to hear that something on a cluster changed. A call is a hint, never the truth."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from django.db import DatabaseError

logger = logging.getLogger(__name__)

DEPLOYMENT_LABEL = "slipway.dev/deployment-id"
Observer = Callable[[int, Mapping[str, str]], None]

_observers: list[Observer] = []


def register(callback: Observer) -> None:
    """`callback(cluster_id, labels)` runs for every changed object of a deployment, in the watcher
    or the worker that saw it; it must be quick. Registering twice is harmless.
    """
    if callback not in _observers:
        _observers.append(callback)


def notify(cluster_id: int, labels: Mapping[str, str]) -> None:
    if DEPLOYMENT_LABEL not in labels:
        return
    for observer in _observers:
        try:
            observer(cluster_id, labels)
        except DatabaseError as error:
            # The sweep of the observer's owner finds the change without the hint.
            logger.warning("an observer failed for %s: %s", labels[DEPLOYMENT_LABEL], error)
