"""Deletes orphans, the contents of deleted namespaces, and old events."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from slipway_localcluster.controllers.ownership import is_deleted, owner_uids
from slipway_localcluster.errors import JsonObject, NotFound
from slipway_localcluster.kinds import EVENT, KINDS, NAMESPACE, Kind
from slipway_localcluster.objects import timestamp
from slipway_localcluster.store import Store

_EVENT_LIFETIME = timedelta(hours=1)
# Deleted with their namespace only: they have no owners, and events are many.
_NEVER_OWNED = (EVENT, NAMESPACE)


class Garbage:
    """Background deletion only: the owner first, then its dependents."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def reconcile(self) -> None:
        objects = [
            (kind, item)
            for kind in KINDS
            if kind not in _NEVER_OWNED
            for item in self._store.list(kind)
        ]
        self._delete_orphans(objects)
        for namespace in self._store.list(NAMESPACE):
            if is_deleted(namespace):
                self._empty(namespace)
        self._expire_events()

    def _delete_orphans(self, objects: list[tuple[Kind, JsonObject]]) -> None:
        living = {item["metadata"]["uid"] for _, item in objects}
        for kind, item in objects:
            owners = owner_uids(item)
            if owners and living.isdisjoint(owners) and not is_deleted(item):
                self._delete(kind, item)

    def _empty(self, namespace: JsonObject) -> None:
        """Delete everything inside; release the namespace once nothing is left."""
        inside = list(self._contents(namespace["metadata"]["name"]))
        for kind, item in inside:
            if not is_deleted(item):
                self._delete(kind, item)
        if not any(self._contents(namespace["metadata"]["name"])):
            namespace["spec"]["finalizers"] = []
            self._store.replace(NAMESPACE, namespace)

    def _contents(self, name: str) -> Iterator[tuple[Kind, JsonObject]]:
        for kind in KINDS:
            if kind.namespaced:
                for item in self._store.list(kind, name):
                    yield kind, item

    def _expire_events(self) -> None:
        oldest = timestamp(datetime.now(UTC) - _EVENT_LIFETIME)
        for event in self._store.list(EVENT):
            last = event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]
            if str(last) < oldest:
                self._delete(EVENT, event)

    def _delete(self, kind: Kind, item: JsonObject) -> None:
        metadata = item["metadata"]
        with suppress(NotFound):
            self._store.delete(
                kind, metadata.get("namespace"), metadata["name"], uid=metadata["uid"]
            )
