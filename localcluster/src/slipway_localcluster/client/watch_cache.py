"""The newest known objects of the watched kinds."""

import json
import threading
from collections.abc import Collection, Iterable

from slipway_localcluster.client.cluster_api import Objects
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import Kind
from slipway_localcluster.objects import load

Key = tuple[str, str]


class WatchCache:
    """Thread-safe. Holds objects as JSON, so callers never share a dict with it."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        self._changed = threading.Condition()
        self._bodies: dict[Kind, dict[Key, tuple[int, str]]] = {kind: {} for kind in kinds}
        self._revision = 0

    def __contains__(self, kind: Kind) -> bool:
        return kind in self._bodies

    @property
    def revision(self) -> int:
        return self._revision

    def wait(self, revision: int, timeout: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._revision > revision, timeout)
            return self._revision

    def list(self, kind: Kind, namespace: str | None = None) -> Objects:
        with self._changed:
            bodies = sorted(self._bodies[kind].items())
        return [load(text) for key, (_, text) in bodies if namespace in (None, key[0])]

    def find(self, kind: Kind, namespace: str | None, name: str) -> JsonObject | None:
        with self._changed:
            entry = self._bodies[kind].get((namespace or "", name))
        return None if entry is None else load(entry[1])

    def replace_all(self, kind: Kind, objects: Iterable[JsonObject]) -> None:
        bodies = {_key(obj): (_version(obj), json.dumps(obj)) for obj in objects}
        with self._changed:
            self._bodies[kind] = bodies
            self._notify()

    def put(self, kind: Kind, obj: JsonObject) -> None:
        """Store an object, unless it is older than the known one: a write may return before its event comes."""
        with self._changed:
            known = self._bodies[kind].get(_key(obj))
            if known is None or known[0] < _version(obj):
                self._bodies[kind][_key(obj)] = (_version(obj), json.dumps(obj))
                self._notify()

    def remove(self, kind: Kind, obj: JsonObject) -> None:
        with self._changed:
            self._bodies[kind].pop(_key(obj), None)
            self._notify()

    def _notify(self) -> None:
        self._revision += 1
        self._changed.notify_all()


def _key(obj: JsonObject) -> Key:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _version(obj: JsonObject) -> int:
    return int(obj["metadata"]["resourceVersion"])
