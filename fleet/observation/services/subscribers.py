"""Callbacks for changes on clusters. A call is a hint; the rows are the truth."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from django.db import DatabaseError

logger = logging.getLogger(__name__)

DEPLOYMENT_LABEL = "slipway.dev/deployment-id"
Observer = Callable[[int, Collection[str]], None]
Reader = Callable[[Collection[int]], None]

# Label and callback: the callback gets that label's values.
_observers: list[tuple[str, Observer]] = []
_deletion_observers: list[Observer] = []
_readers: list[Reader] = []


def register(callback: Observer, *, label: str = DEPLOYMENT_LABEL) -> None:
    """Call `callback(cluster_id, values)` with the label's values of changed objects, in the process that
    observed the change; it must be quick. Registering twice has no effect.
    """
    if (label, callback) not in _observers:
        _observers.append((label, callback))


def notify(cluster_id: int, changed: Iterable[Mapping[str, str]]) -> None:
    """Notify about objects with these labels, all in one call: a listing has thousands, and the watcher
    writes nothing meanwhile.
    """
    changed_labels = list(changed)
    for label, observer in _observers:
        values = {labels[label] for labels in changed_labels if label in labels}
        if values:
            _call(observer, cluster_id, values)


def register_deletions(callback: Observer) -> None:
    """Call `callback(cluster_id, values)` with DEPLOYMENT_LABEL's values of dependent objects that somebody
    deleted: network policies, disruption budgets and service monitors.
    """
    if callback not in _deletion_observers:
        _deletion_observers.append(callback)


def notify_deleted(cluster_id: int, deleted: Iterable[Mapping[str, str]]) -> None:
    values = {labels[DEPLOYMENT_LABEL] for labels in deleted if DEPLOYMENT_LABEL in labels}
    for observer in _deletion_observers if values else ():
        _call(observer, cluster_id, values)


def _call(observer: Observer, cluster_id: int, values: Collection[str]) -> None:
    try:
        observer(cluster_id, values)
    except DatabaseError as error:
        # The observer's own sweep handles the change without the hint.
        logger.warning("an observer failed for %s objects: %s", len(values), error)


def register_reader(callback: Reader) -> None:
    """Call `callback(cluster_ids)` after pods of these clusters were read, in the worker that read them."""
    if callback not in _readers:
        _readers.append(callback)


def notify_read(cluster_ids: Collection[int]) -> None:
    for reader in _readers:
        try:
            reader(cluster_ids)
        except DatabaseError as error:
            # As above.
            logger.warning(
                "a reader failed after %s clusters were read: %s", len(cluster_ids), error
            )
