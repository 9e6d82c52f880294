"""Persist moto's S3 in files, so that objects and their VersionIds outlive the process.

One pickle per bucket and one per key, with all versions of that key, which name the files of their
bytes (see s3_bodies). A pickle is written beside its place and renamed, so a process that dies leaves
the old one or the new one; files that no pickle names are removed at the next start. Open multipart
uploads are not kept: after a restart they are unknown, and their owner must begin again.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from pathlib import Path
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import FakeBucket, S3Backend, s3_backends

from slipway_demo import s3_objects

_NOT_KEPT = frozenset({"keys", "multiparts"})
# No bucket can have this name.
_BODIES = "_bodies"
_Shape = tuple[tuple[str, int], ...]


class Store:
    """Mirrors the buckets in memory into `folder`. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._shapes: dict[str, dict[str, _Shape]] = {}
        self._bodies = s3_objects.install(folder / _BODIES)
        self.backend: S3Backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]

    def load(self) -> None:
        for path in sorted(self._folder.glob("*/bucket.pickle")):
            state = _read(path)
            bucket = self.backend.create_bucket(state["name"], state["region_name"])
            bucket.__dict__.update(state)
            for key_path in (path.parent / "keys").glob("*.pickle"):
                name, versions = _read(key_path)
                bucket.keys.setlist(name, versions)
            self._shapes[bucket.name] = _shapes_of(bucket)
        keys = [key for bucket in self.backend.buckets.values() for key in _stored_keys(bucket)]
        self._bodies.keep_only(key.value for key in keys)

    def sweep(self) -> None:
        """Remove the bytes of what a request replaced or ended. For requests that change no object."""
        self._bodies.sweep()

    def keep(self, bucket_name: str, key_name: str | None) -> None:
        """Write changes to the files. `key_name` is written even if only its tags changed."""
        with self._lock:
            self._write_changes(bucket_name, key_name)
        self._bodies.sweep()

    def _write_changes(self, bucket_name: str, key_name: str | None) -> None:
        bucket = self.backend.buckets.get(bucket_name)
        folder = self._folder / bucket_name
        if bucket is None:
            self._forget(folder, bucket_name)
            return
        state = {k: v for k, v in bucket.__dict__.items() if k not in _NOT_KEPT}
        _write(folder / "bucket.pickle", state)
        self._keep_keys(bucket, folder / "keys", key_name)

    def _keep_keys(self, bucket: FakeBucket, folder: Path, key_name: str | None) -> None:
        before, now = self._shapes.get(bucket.name, {}), _shapes_of(bucket)
        for name in before.keys() - now.keys():
            _path_of(folder, name).unlink(missing_ok=True)
        changed = {name for name, shape in now.items() if before.get(name) != shape}
        if key_name in now:
            changed.add(key_name)
        for name in changed:
            _write(_path_of(folder, name), (name, bucket.keys.getlist(name)))
        self._shapes[bucket.name] = now

    def _forget(self, folder: Path, bucket_name: str) -> None:
        self._shapes.pop(bucket_name, None)
        for path in [*folder.glob("keys/*.pickle"), folder / "bucket.pickle"]:
            path.unlink(missing_ok=True)


def _shapes_of(bucket: FakeBucket) -> dict[str, _Shape]:
    return {
        name: tuple((str(version.version_id), id(version)) for version in versions)
        for name, versions in bucket.keys.lists()
    }


def _stored_keys(bucket: FakeBucket) -> list[s3_objects.StoredKey]:
    """Return all versions but delete markers."""
    versions = [version for _, versions in bucket.keys.lists() for version in versions]
    return [version for version in versions if isinstance(version, s3_objects.StoredKey)]


def _path_of(folder: Path, key_name: str) -> Path:
    return folder / f"{hashlib.sha256(key_name.encode()).hexdigest()}.pickle"


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        return pickle.load(file)


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("wb") as file:
        pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
    beside.replace(path)
