"""Watch clusters: one stream per kind, and one writer per cluster that turns events into rows.

A lost event costs time only: a broken stream lists again, and fleet.observation.services.sweep lists
everything periodically.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, close_old_connections, connection

from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError, ObjectNotFound, WatchExpired
from fleet.kube.domain.resource_types import Manifest, ResourceType
from fleet.kube.gateways.kube_client import KubeClient, Listing, WatchEvent
from fleet.kube.services import clients
from fleet.models import Cluster
from fleet.observation.services import record, subscribers
from fleet.observation.services.record import DeviceChanges, FullListing, ObservedChanges
from portal.core import clock
from portal.core.errors import NotFound

logger = logging.getLogger(__name__)

MANAGED = {"app.kubernetes.io/managed-by": "slipway"}
_ESSENTIAL = (resource_types.POD, resource_types.NODE)
_HINTS = (resource_types.INFERENCE_SERVICE, resource_types.DEPLOYMENT, resource_types.HTTP_ROUTE)
# Only their deletion matters: nothing else of them is observed between two checks.
_DEPENDENTS = (
    resource_types.NETWORK_POLICY,
    resource_types.DISRUPTION_BUDGET,
    resource_types.SERVICE_MONITOR,
)
# Where the cluster serves them: what pods can claim, and what they hold.
_DEVICES = (resource_types.RESOURCE_SLICE, resource_types.RESOURCE_CLAIM)
WATCHED = (*_ESSENTIAL, *_HINTS, *_DEPENDENTS, *_DEVICES)
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_NOT_SERVED_WAIT_SECONDS = 60.0
_HEARTBEAT = timedelta(seconds=3)
_BATCH = 500
_jitter = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class _Listed:
    kind: ResourceType
    listing: Listing
    # The time before the request.
    at: datetime


@dataclass(frozen=True, slots=True)
class _Changed:
    kind: ResourceType
    event: WatchEvent


_Item = _Listed | _Changed
# By kind, and whether they were deleted.
_Objects = Mapping[tuple[ResourceType, bool], Sequence[Manifest]]
_NO_DEVICES = DeviceChanges([], [], [], [])


class ClusterWatch:
    """The watch of one cluster. `start` does not block. After `stop` the writer ends within a second, and each
    reader with its stream or with the process.
    """

    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._stopping = threading.Event()
        self._items: queue.Queue[_Item] = queue.Queue(maxsize=20_000)
        self._is_following = {kind: threading.Event() for kind in _ESSENTIAL}
        self._beat_at: datetime | None = None
        self._writer = threading.Thread(
            target=self._write_all, name=f"watch-{cluster_id}", daemon=True
        )
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        self._writer.start()
        for kind in WATCHED:
            name = f"watch-{self.cluster_id}-{kind.plural}"
            reader = threading.Thread(target=self._follow, args=(kind,), name=name, daemon=True)
            self._readers.append(reader)
            reader.start()

    def stop(self) -> None:
        self._stopping.set()

    def join(self, seconds: float) -> None:
        self._writer.join(seconds)

    def is_well(self) -> bool:
        """Return whether all threads run. One that ended by the portal's fault is not started again: its kind would
        stay unwatched until a restart.
        """
        return all(thread.is_alive() for thread in (self._writer, *self._readers))

    def _follow(self, kind: ResourceType) -> None:
        wait = _FIRST_WAIT_SECONDS
        while not self._stopping.is_set():
            try:
                client = clients.client_for(self.cluster_id)
                # A stream lives for hours: without this each one would hold a session of the database.
                connection.close()
                for _ in self._stream(client, kind):
                    wait = _FIRST_WAIT_SECONDS
            except WatchExpired:
                logger.info("watch: cluster %s lists %s again", self.cluster_id, kind.plural)
            except NotFound:
                # The cluster was deleted; the watcher stops this watch.
                return
            except ObjectNotFound:
                self._stopping.wait(_NOT_SERVED_WAIT_SECONDS)
            except (ClusterError, DatabaseError) as error:
                self._clear_following(kind, error)
                self._stopping.wait(wait * _jitter.uniform(0.5, 1.0))
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
            finally:
                connection.close()

    def _stream(self, client: KubeClient, kind: ResourceType) -> Iterable[None]:
        """List once, then follow; yields after each listing, change and bookmark."""
        labels = None if kind in (*_ESSENTIAL, *_DEVICES) else MANAGED
        at = clock.now()
        listing = client.list_all(kind, labels=labels)
        self._items.put(_Listed(kind, listing, at))
        version = listing.resource_version
        self._set_following(kind)
        yield
        while not self._stopping.is_set():
            for event in client.watch(kind, resource_version=version, labels=labels):
                version = event.resource_version or version
                if event.type != "BOOKMARK":
                    self._items.put(_Changed(kind, event))
                yield
                if self._stopping.is_set():
                    return
            self._set_following(kind)

    def _set_following(self, kind: ResourceType) -> None:
        if kind in self._is_following and not self._is_following[kind].is_set():
            self._is_following[kind].set()
            logger.info("watch: cluster %s follows %s", self.cluster_id, kind.plural)

    def _clear_following(self, kind: ResourceType, error: Exception) -> None:
        if kind in self._is_following and self._is_following[kind].is_set():
            self._is_following[kind].clear()
            logger.warning("watch: cluster %s lost %s: %s", self.cluster_id, kind.plural, error)

    def _write_all(self) -> None:
        while not self._stopping.is_set():
            batch = self._next_batch()
            try:
                close_old_connections()
                if batch:
                    self._write(batch)
                self._beat()
            except DatabaseError as error:
                # The sweep makes up for this batch.
                logger.warning("watch: cluster %s lost a batch: %s", self.cluster_id, error)
                connection.close()
        connection.close()

    def _next_batch(self) -> list[_Item]:
        """Return the queued items, or nothing after half a second."""
        try:
            batch = [self._items.get(timeout=0.5)]
        except queue.Empty:
            return []
        while len(batch) < _BATCH:
            try:
                batch.append(self._items.get_nowait())
            except queue.Empty:
                break
        return batch

    def _write(self, batch: Iterable[_Item]) -> None:
        pending: list[_Changed] = []
        for item in batch:
            if isinstance(item, _Changed):
                pending.append(item)
            else:
                self._record(pending)
                pending = []
                self._replace(item)
        self._record(pending)

    def _replace(self, item: _Listed) -> None:
        if item.kind in _HINTS:
            subscribers.notify(self.cluster_id, _labels_of(item.listing.items))
        if item.kind not in (*_ESSENTIAL, *_DEVICES):
            return
        text = item.listing.resource_version
        complete = FullListing(item.listing.items, int(text) if text.isdigit() else 0)
        if item.kind in _DEVICES:
            record.replace_devices(
                cluster_id=self.cluster_id,
                slices=complete if item.kind is resource_types.RESOURCE_SLICE else None,
                claims=complete if item.kind is resource_types.RESOURCE_CLAIM else None,
                at=item.at,
            )
            return
        record.replace_all(
            cluster_id=self.cluster_id,
            nodes=complete if item.kind is resource_types.NODE else None,
            pods=complete if item.kind is resource_types.POD else None,
            at=item.at,
        )

    def _record(self, changes: list[_Changed]) -> None:
        if not changes:
            return
        last = {(change.kind, change.event.object["metadata"]["uid"]): change for change in changes}
        objects = {
            (kind, is_deleted): [
                change.event.object
                for change in last.values()
                if change.kind is kind and (change.event.type == "DELETED") is is_deleted
            ]
            for kind in (*_ESSENTIAL, *_DEVICES)
            for is_deleted in (False, True)
        }
        pods_and_nodes = (items for (kind, _), items in objects.items() if kind in _ESSENTIAL)
        if any(pods_and_nodes):
            record.record(
                cluster_id=self.cluster_id,
                changes=ObservedChanges(
                    nodes=objects[resource_types.NODE, False],
                    deleted_nodes=objects[resource_types.NODE, True],
                    pods=objects[resource_types.POD, False],
                    deleted_pods=objects[resource_types.POD, True],
                ),
                at=clock.now(),
            )
        self._record_devices(objects)
        self._hint(list(last.values()))

    def _record_devices(self, objects: _Objects) -> None:
        changes = DeviceChanges(
            slices=objects[resource_types.RESOURCE_SLICE, False],
            deleted_slices=objects[resource_types.RESOURCE_SLICE, True],
            claims=objects[resource_types.RESOURCE_CLAIM, False],
            deleted_claims=objects[resource_types.RESOURCE_CLAIM, True],
        )
        if changes != _NO_DEVICES:
            record.record_devices(cluster_id=self.cluster_id, changes=changes, at=clock.now())

    def _hint(self, changes: Sequence[_Changed]) -> None:
        changed = [change.event.object for change in changes if change.kind in _HINTS]
        deleted = [
            change.event.object
            for change in changes
            if change.kind in _DEPENDENTS and change.event.type == "DELETED"
        ]
        subscribers.notify(self.cluster_id, _labels_of(changed))
        subscribers.notify_deleted(self.cluster_id, _labels_of(deleted))

    def _beat(self) -> None:
        """Record that pods and nodes are watched; the sweep then lists less often."""
        now = clock.now()
        if self._beat_at is not None and now - self._beat_at < _HEARTBEAT:
            return
        if all(event.is_set() for event in self._is_following.values()):
            Cluster.objects.filter(pk=self.cluster_id).update(watch_seen_at=now)
            self._beat_at = now


def _labels_of(objects: Iterable[Manifest]) -> list[Mapping[str, str]]:
    return [item["metadata"].get("labels") or {} for item in objects]
