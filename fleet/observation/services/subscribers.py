"""Who wants to hear that something on a cluster changed. A call is a hint, never the truth."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from django.db import DatabaseError

logger = logging.getLogger(__name__)

DEPLOYMENT_LABEL = "slipway.dev/deployment-id"
Observer = Callable[[int, Collection[str]], None]
Reader = Callable[[Collection[int]], None]

# With the label whose values each wants to hear.
_observers: list[tuple[str, Observer]] = []
_readers: list[Reader] = []


def register(callback: Observer, *, label: str = DEPLOYMENT_LABEL) -> None:
    """`callback(cluster_id, values)` runs with the label's values of those of which something
    changed, in the watcher or the worker that saw it; it must be quick. Registering twice is
    harmless.
    """
    if (label, callback) not in _observers:
        _observers.append((label, callback))


def notify(cluster_id: int, changed: Iterable[Mapping[str, str]]) -> None:
    """`changed` are the labels of objects. All at once: a listing has thousands, and the watcher
    writes nothing meanwhile.
    """
    seen = list(changed)
    for label, observer in _observers:
        values = {labels[label] for labels in seen if label in labels}
        if not values:
            continue
        try:
            observer(cluster_id, values)
        except DatabaseError as error:
            # The sweep of the observer's owner finds the change without the hint.
            logger.warning("an observer failed for %s objects: %s", len(values), error)


def register_reader(callback: Reader) -> None:
    """`callback(cluster_ids)` runs after pods of these clusters were read, in the worker that did."""
    if callback not in _readers:
        _readers.append(callback)


def notify_read(cluster_ids: Collection[int]) -> None:
    for reader in _readers:
        try:
            reader(cluster_ids)
        except DatabaseError as error:
            # As above: a sweep finds the readings too.
            logger.warning(
                "a reader failed after %s clusters were read: %s", len(cluster_ids), error
            )
