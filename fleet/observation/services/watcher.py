"""One watch for each registered cluster, as the process `manage.py watch_clusters` keeps them."""

from __future__ import annotations

import logging

from django.db import DatabaseError, close_old_connections

from fleet.models import Cluster
from fleet.observation.services.watch import ClusterWatch

logger = logging.getLogger(__name__)


class Watcher:
    """The watches of all registered clusters, one ClusterWatch for each."""

    def __init__(self) -> None:
        self._watches: dict[int, ClusterWatch] = {}

    def refresh(self) -> None:
        """Start watches of new clusters and stop those of deleted ones."""
        try:
            close_old_connections()
            cluster_ids = set(Cluster.objects.values_list("pk", flat=True))
        except DatabaseError as error:
            logger.warning("watch: the database does not answer: %s", error)
            return
        for cluster_id in cluster_ids - self._watches.keys():
            self._watches[cluster_id] = ClusterWatch(cluster_id)
            self._watches[cluster_id].start()
        for cluster_id in self._watches.keys() - cluster_ids:
            self._watches.pop(cluster_id).stop()

    def is_well(self) -> bool:
        return all(watch.is_well() for watch in self._watches.values())

    def stop(self) -> None:
        for watch in self._watches.values():
            watch.stop()
        for watch in self._watches.values():
            watch.join(2)
