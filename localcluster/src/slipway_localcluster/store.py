"""Objects of the embedded cluster, kept in one SQLite file.

Every write is one transaction that raises the global revision by one and appends to a bounded
history, from which watches resume, also after a restart. Objects are stored as JSON, so
callers never share a dict with the store.
"""

import json
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slipway_localcluster.client.cluster_api import Objects
from slipway_localcluster.errors import AlreadyExists, Gone, JsonObject
from slipway_localcluster.kinds import NAMESPACE, Kind, by_kind
from slipway_localcluster.objects import (
    conflict,
    grace_seconds_of,
    has_finalizers,
    is_removable,
    keep_fixed_metadata,
    load,
    mark_deleted,
    not_found,
    timestamp,
)

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    api_version TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (api_version, kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history (
    revision INTEGER PRIMARY KEY, type TEXT NOT NULL, api_version TEXT NOT NULL,
    kind TEXT NOT NULL, body TEXT NOT NULL, previous TEXT
);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('revision', 1), ('compacted', 1);
"""
_GET = "SELECT body FROM objects WHERE api_version = ? AND kind = ? AND namespace = ? AND name = ?"
_DELETE = "DELETE FROM objects WHERE api_version = ? AND kind = ? AND namespace = ? AND name = ?"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change; `previous` is the object before it, which shows that it left a selector."""

    type: EventType
    kind: Kind
    object: JsonObject
    revision: int
    previous: JsonObject | None = None


class Store:
    """Thread-safe; every call is one transaction; `exclusive()` groups calls."""

    def __init__(
        self, path: Path | str, *, history_limit: int = 4000, has_node_agent: bool = False
    ) -> None:
        """Open the store. With a node agent a deleted pod stays until the agent has ended it."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._listeners: list[Callable[[int], None]] = []
        self._history_limit = history_limit
        self._has_node_agent = has_node_agent
        self._db = sqlite3.connect(str(path), check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)
        meta = dict(self._db.execute("SELECT key, value FROM meta").fetchall())
        self._revision = int(meta["revision"])
        self._compacted = int(meta["compacted"])

    @property
    def revision(self) -> int:
        """The resourceVersion of the last write; grows by one with every write."""
        return self._revision

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads out between a read and the write that depends on it."""
        with self._lock:
            yield

    def find(self, kind: Kind, namespace: str | None, name: str) -> JsonObject | None:
        text = self._text(kind, namespace, name)
        return None if text is None else load(text)

    def get(self, kind: Kind, namespace: str | None, name: str) -> JsonObject:
        obj = self.find(kind, namespace, name)
        if obj is None:
            raise not_found(kind, name)
        return obj

    def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Objects:
        """List the objects by namespace, then name. `labels` must all be equal."""
        return self.snapshot(kind, namespace, labels)[0]

    def snapshot(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> tuple[Objects, int]:
        """Return the list and its revision, from which a watch continues."""
        query = "SELECT body FROM objects WHERE api_version = ? AND kind = ?"
        arguments = [kind.api_version, kind.kind]
        if namespace and kind.namespaced:
            query += " AND namespace = ?"
            arguments.append(namespace)
        with self._lock:
            rows = self._db.execute(f"{query} ORDER BY namespace, name", arguments).fetchall()
            revision = self._revision
        objects = [load(body) for (body,) in rows]
        required = (labels or {}).items()
        return [
            item
            for item in objects
            if not required or required <= (item["metadata"].get("labels") or {}).items()
        ], revision

    def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        created = load(json.dumps(obj))
        metadata = created["metadata"]
        if not kind.namespaced:
            metadata.pop("namespace", None)
        created |= {"apiVersion": kind.api_version, "kind": kind.kind}
        if kind is NAMESPACE:
            created["spec"] = {"finalizers": ["kubernetes"]} | (created.get("spec") or {})
        with self._lock:
            if self._text(kind, metadata.get("namespace"), metadata["name"]) is not None:
                raise AlreadyExists(
                    f'{kind.resource} "{metadata["name"]}" already exists',
                    details={"name": metadata["name"], "group": kind.group, "kind": kind.plural},
                )
            metadata |= {
                "uid": metadata.get("uid") or str(uuid.uuid4()),
                "creationTimestamp": timestamp(),
                "generation": 1,
            }
            return self._write("ADDED", kind, created, None)

    def replace(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Write everything except status; an unchanged object is not written. Compares resourceVersion
        when the object carries one. Removes a deleted object whose last finalizer is gone."""
        updated = load(json.dumps(obj))
        with self._lock:
            current = self._current(kind, updated)
            updated |= {"apiVersion": kind.api_version, "kind": kind.kind}
            keep_fixed_metadata(updated, current)
            if kind.has_status:
                updated.pop("status", None)
                if "status" in current:
                    updated["status"] = current["status"]
            generation = int(current["metadata"].get("generation", 1))
            changed_spec = updated.get("spec") != current.get("spec")
            updated["metadata"]["generation"] = generation + int(changed_spec)
            if is_removable(updated):
                return self._write("DELETED", kind, updated, current)
            if updated == current:
                return current
            return self._write("MODIFIED", kind, updated, current)

    def replace_status(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Write `.status` alone; an unchanged status is not written."""
        with self._lock:
            current = self._current(kind, obj)
            if obj.get("status") == current.get("status"):
                return current
            updated = dict(current)
            updated.pop("status", None)
            if "status" in obj:
                updated["status"] = obj["status"]
            updated["metadata"] = dict(current["metadata"])
            if "managedFields" in obj["metadata"]:
                updated["metadata"]["managedFields"] = obj["metadata"]["managedFields"]
            return self._write("MODIFIED", kind, updated, current)

    def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> JsonObject:
        """Remove the object, or mark it as deleted while it has finalizers or a grace period."""
        with self._lock:
            current = self.get(kind, namespace, name)
            actual = current["metadata"]["uid"]
            if uid not in (None, actual):
                raise conflict(kind, name, f"the precondition's UID {uid} is not {actual}")
            is_graceful = self._has_node_agent
            grace = grace_seconds_of(kind, current, grace_period_seconds) if is_graceful else 0
            if not grace and not has_finalizers(current):
                return self._write("DELETED", kind, current, current)
            marked = mark_deleted(kind, current, grace)
            return marked if marked is current else self._write("MODIFIED", kind, marked, current)

    def events_since(self, revision: int, kind: Kind | None = None) -> Iterator[WatchEvent]:
        """Return the changes after `revision`, oldest first."""
        query = "SELECT * FROM history WHERE revision > ?"
        arguments: list[int | str] = [revision]
        if kind is not None:
            query += " AND api_version = ? AND kind = ?"
            arguments += [kind.api_version, kind.kind]
        with self._lock:
            if revision < self._compacted:
                raise Gone(f"too old resource version: {revision} ({self._compacted})")
            rows = self._db.execute(f"{query} ORDER BY revision", arguments).fetchall()
        for number, change, api_version, name, body, previous in rows:
            before = None if previous is None else load(previous)
            yield WatchEvent(change, by_kind(api_version, name), load(body), number, before)

    def wait(self, revision: int, timeout: float) -> int:
        """Block until something newer than `revision` is stored, at most `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._revision > revision, timeout)
            return self._revision

    def add_listener(self, listener: Callable[[int], None]) -> None:
        """Add a listener: `listener(revision)` runs in the writing thread after each write; it must not block."""
        self._listeners.append(listener)

    def _text(self, kind: Kind, namespace: str | None, name: str) -> str | None:
        place = (namespace or "") if kind.namespaced else ""
        with self._lock:
            row = self._db.execute(_GET, (kind.api_version, kind.kind, place, name)).fetchone()
        return None if row is None else str(row[0])

    def _current(self, kind: Kind, obj: JsonObject) -> JsonObject:
        metadata = obj["metadata"]
        current = self.get(kind, metadata.get("namespace"), metadata["name"])
        expected = metadata.get("resourceVersion")
        if expected and expected != current["metadata"]["resourceVersion"]:
            raise conflict(
                kind,
                metadata["name"],
                "the object has been modified; please apply your changes to the latest version "
                "and try again",
            )
        if metadata.get("uid", current["metadata"]["uid"]) != current["metadata"]["uid"]:
            raise conflict(kind, metadata["name"], "the object was deleted and created again")
        return current

    def _write(
        self, change: EventType, kind: Kind, obj: JsonObject, previous: JsonObject | None
    ) -> JsonObject:
        metadata, revision = obj["metadata"], self._revision + 1
        obj = obj | {"metadata": metadata | {"resourceVersion": str(revision)}}
        body = json.dumps(obj, separators=(",", ":"))
        before = None if previous is None else json.dumps(previous, separators=(",", ":"))
        key = (kind.api_version, kind.kind, metadata.get("namespace", ""), metadata["name"])
        with self._transaction():
            if change == "DELETED":
                self._db.execute(_DELETE, key)
            else:
                self._db.execute("INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", (*key, body))
            self._db.execute(
                "INSERT INTO history VALUES (?,?,?,?,?,?)",
                (revision, change, kind.api_version, kind.kind, body, before),
            )
            self._db.execute("UPDATE meta SET value = ? WHERE key = 'revision'", (revision,))
            self._compact(revision)
        self._revision = revision
        self._changed.notify_all()
        for listener in self._listeners:
            listener(revision)
        return obj

    def _compact(self, revision: int) -> None:
        oldest = revision - self._history_limit
        # In steps, so that most writes do not pay for it.
        if oldest - self._compacted < max(self._history_limit // 10, 1):
            return
        self._db.execute("DELETE FROM history WHERE revision <= ?", (oldest,))
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'compacted'", (oldest,))
        self._compacted = oldest

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
